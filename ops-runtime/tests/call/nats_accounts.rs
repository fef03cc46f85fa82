//! Accounts of a NATS server: files of credentials, whose tokens an operator's and an account's key have signed.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use ops_runtime::call::CallHandler;
use ops_runtime::call::nats::{Nats, NatsConfig};
use serde_json::{Value, json};

use crate::harness::limited;
use crate::operations::{Probe, registry};
use crate::servers::Server;

/// A token about the owner of a key, which another key has signed.
fn token(signer: &KeyPair, subject: &KeyPair, name: &str, about: Value) -> String {
    let encoded = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let subject = subject.public_key();
    let claims = json!({
        "jti": format!("{name}-{subject}"), "iat": 1_700_000_000, "iss": signer.public_key(), "name": name, "sub": subject,
        "nats": about,
    });
    let signed = format!("{}.{}", encoded(json!({ "typ": "JWT", "alg": "ed25519-nkey" })), encoded(claims));
    let signature = signer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// An account, whose users share their subjects with those of no other.
struct Account {
    key: KeyPair,
    token: String,
}

impl Account {
    fn new(operator: &KeyPair, name: &str) -> Self {
        let key = KeyPair::new_account();
        let all = ["subs", "data", "payload", "imports", "exports", "conn", "leaf"];
        let mut limits: Value = all.into_iter().map(|name| (name.to_owned(), json!(-1))).collect();
        limits["wildcards"] = json!(true);
        let token = token(operator, &key, name, json!({ "type": "account", "version": 2, "limits": limits }));
        Self { key, token }
    }

    /// What the file of credentials of a new user holds.
    fn credentials(&self, name: &str) -> String {
        let user = KeyPair::new_user();
        let about =
            json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {} });
        let token = token(&self.key, &user, name, about);
        let seed = user.seed().unwrap();
        format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_an_account_call_each_other_and_nobody_else() {
    limited(async {
        let operator = KeyPair::new_operator();
        let [shop, bank, unknown] = ["shop", "bank", "unknown"].map(|name| Account::new(&operator, name));
        let accounts = [&shop, &bank].map(|account| format!("{}: {}", account.key.public_key(), account.token));
        let own = token(&operator, &operator, "operator", json!({ "type": "operator", "version": 2 }));
        let configuration =
            format!("operator: {own}\nresolver: MEMORY\nresolver_preload: {{ {} }}\n", accounts.join("\n"));
        let server = Server::nats_of(configuration).await;
        let url = format!("nats://{}", server.address());
        let connect = |credentials: String| Nats::connect(&url, NatsConfig::new().with_credentials(credentials));
        let nats = connect(shop.credentials("worker")).await.unwrap();
        let worker = nats.serve(CallHandler::new(registry(&Arc::new(Probe::default())))).await.unwrap();

        let remote = connect(shop.credentials("caller")).await.unwrap().remote().await.unwrap();
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        let other = connect(bank.credentials("caller")).await.unwrap().remote().await.unwrap();
        let nobody = other.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
        assert_eq!(nobody.code().as_str(), "OPERATION_NOT_FOUND", "{nobody}");

        let mixed = shop.credentials("a").replace("USER NKEY SEED", "ACCOUNT NKEY SEED");
        for (credentials, why) in [
            (unknown.credentials("caller"), "can't be used"),
            (mixed.replace('S', "s"), "`with_credentials` cannot be used"),
            (String::new(), "`with_credentials` cannot be used"),
            ("-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n".to_owned(), "`with_credentials`"),
        ] {
            let told = connect(credentials.clone()).await.map(drop).unwrap_err().to_string();
            assert!(told.contains(why), "{credentials}: {told}");
        }
        let shown = format!("{:?}", NatsConfig::new().with_credentials(shop.credentials("hush")));
        assert!(shown.contains("credentials") && !shown.contains("BEGIN"), "{shown}");
        let none = Nats::connect(&url, NatsConfig::new()).await.map(drop).unwrap_err().to_string();
        assert!(none.contains("can't be used"), "{none}");
        worker.stop().await;
    })
    .await;
}
