//! Signatures of webhooks, by published vectors and by Python's `hmac`.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use ops_runtime::webhooks::{Algorithm, Encoding, WebhookError, WebhookVerifier};

/// The vector of the libraries of Standard Webhooks.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIME: &str = "1614265330";
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn headers<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let header = |(name, value): (&str, &str)| {
        (HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    let mut headers = HeaderMap::new();
    all.into_iter().map(header).for_each(|(name, value)| _ = headers.append(name, value));
    headers
}

fn standard<'a>(id: &'a str, time: &'a str, signature: &'a str) -> HeaderMap {
    headers([("webhook-id", id), ("webhook-timestamp", time), ("webhook-signature", signature)])
}

#[test]
fn standard_webhooks() {
    let verifier = WebhookVerifier::standard(SECRET).unwrap();
    let now = at(1_614_265_330);
    let wrong = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=";
    let (several, others) = (format!("v1a,xyz {wrong} {SIGNATURE} v2,abc"), format!("v1a,xyz v2,{}", &SIGNATURE[3..]));
    let malformed = |name: &str| Err(WebhookError::MalformedHeader(name.to_owned()));
    let missing = |name: &str| Err(WebhookError::MissingHeader(name.to_owned()));
    let out_of_time = |seconds| {
        Err(WebhookError::OutOfTime { away: Duration::from_secs(seconds), tolerance: Duration::from_secs(300) })
    };
    for (headers, body, now, expected) in [
        (standard(ID, TIME, SIGNATURE), BODY, now, Ok(())),
        (standard(ID, TIME, &several), BODY, now, Ok(())),
        (standard(ID, TIME, SIGNATURE), BODY, at(1_614_265_330 + 300), Ok(())),
        (standard(ID, TIME, SIGNATURE), BODY, at(1_614_265_330 + 301), out_of_time(301)),
        (standard(ID, TIME, SIGNATURE), BODY, at(1_614_265_330 - 301), out_of_time(301)),
        (standard(ID, TIME, wrong), BODY, now, Err(WebhookError::WrongSignature)),
        (standard(ID, TIME, &others), BODY, now, Err(WebhookError::WrongSignature)),
        (standard(ID, TIME, ""), BODY, now, Err(WebhookError::WrongSignature)),
        (standard(ID, TIME, "v1,not base64"), BODY, now, Err(WebhookError::WrongSignature)),
        (standard("msg_other", TIME, SIGNATURE), BODY, now, Err(WebhookError::WrongSignature)),
        (standard(ID, "1614265331", SIGNATURE), BODY, now, Err(WebhookError::WrongSignature)),
        (standard(ID, TIME, SIGNATURE), b"{\"test\":2432232314}", now, Err(WebhookError::WrongSignature)),
        (standard(ID, "+1614265330", SIGNATURE), BODY, now, malformed("webhook-timestamp")),
        (standard(ID, "99999999999999999999", SIGNATURE), BODY, now, malformed("webhook-timestamp")),
        (standard(ID, "", SIGNATURE), BODY, now, malformed("webhook-timestamp")),
        (standard("\u{e9}", TIME, SIGNATURE), BODY, now, malformed("webhook-id")),
        (headers([]), BODY, now, missing("webhook-id")),
        (headers([("webhook-id", ID), ("webhook-timestamp", TIME)]), BODY, now, missing("webhook-signature")),
        (
            headers([
                ("webhook-id", ID),
                ("webhook-id", "b"),
                ("webhook-timestamp", TIME),
                ("webhook-signature", SIGNATURE),
            ]),
            BODY,
            now,
            malformed("webhook-id"),
        ),
        // Of two faults, the time is told first: no signature is computed for what is too old.
        (standard(ID, TIME, wrong), BODY, at(0), out_of_time(1_614_265_330)),
    ] {
        assert_eq!(verifier.verify_at(&headers, body, now), expected, "{headers:?}");
    }
    assert!(verifier.verify(&standard(ID, TIME, SIGNATURE), BODY).is_err(), "it is years old");
    let patient = verifier.clone().with_tolerance(Duration::MAX);
    assert_eq!(patient.verify(&standard(ID, TIME, SIGNATURE), BODY), Ok(()));

    // Another secret, and the headers of Svix.
    let rotated = WebhookVerifier::standard("whsec_b3RoZXI=").unwrap();
    assert_eq!(rotated.verify_at(&standard(ID, TIME, SIGNATURE), BODY, now), Err(WebhookError::WrongSignature));
    let rotated = rotated.with_secret(&SECRET[6..]).unwrap().with_header_prefix("svix-");
    let svix = headers([("svix-id", ID), ("svix-timestamp", TIME), ("svix-signature", SIGNATURE)]);
    assert_eq!(rotated.verify_at(&svix, BODY, now), Ok(()));
    assert!(!format!("{rotated:?}").contains("MfKQ"));

    for secret in ["whsec_", "", "whsec_***"] {
        assert!(matches!(WebhookVerifier::standard(secret), Err(WebhookError::InvalidSecret(_))), "{secret}");
    }
    assert!(rotated.with_secret("whsec_***").is_err());
}

/// What Python's `hmac` makes of a text.
fn by_python(algorithm: &str, secret: &str, text: &str, encoding: &str) -> String {
    let script = "import base64, hmac, sys; a, k, t, e = sys.argv[1:]; d = hmac.new(k.encode(), t.encode(), a).digest(); \
                  print(d.hex() if e == 'hex' else base64.b64encode(d).decode(), end='')";
    let output = Command::new("python3").args(["-c", script, algorithm, secret, text, encoding]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn schemes_of_services() {
    const NOW: u64 = 1_700_000_000;
    let body = r#"{"grüß":"Gott"}"#;
    let new = |header: &str| WebhookVerifier::new(header, "s3cr3t").unwrap();
    let signed = |algorithm, text: &str, encoding| by_python(algorithm, "s3cr3t", text, encoding);
    let timed = format!("{NOW}.{body}");
    let stripe = signed("sha256", &timed, "hex");
    let old = format!("t={},v1={}", NOW - 301, signed("sha256", &format!("{}.{body}", NOW - 301), "hex"));
    for (name, verifier, headers, expected) in [
        (
            "GitHub",
            new("X-Hub-Signature-256").with_prefix("sha256="),
            headers([("x-hub-signature-256", &*format!("sha256={}", signed("sha256", body, "hex")))]),
            true,
        ),
        ("upper case", new("X-Sig"), headers([("x-sig", &*signed("sha256", body, "hex").to_uppercase())]), true),
        (
            "without the prefix",
            new("X-Hub-Signature-256").with_prefix("sha256="),
            headers([("x-hub-signature-256", &*signed("sha256", body, "hex"))]),
            false,
        ),
        (
            "SHA-1",
            new("X-Hub-Signature").with_prefix("sha1=").with_algorithm(Algorithm::Sha1),
            headers([("x-hub-signature", &*format!("sha1={}", signed("sha1", body, "hex")))]),
            true,
        ),
        (
            "SHA-512 in base64",
            new("X-Sig").with_algorithm(Algorithm::Sha512).with_encoding(Encoding::Base64),
            headers([("x-sig", &*signed("sha512", body, "base64"))]),
            true,
        ),
        (
            "Shopify",
            new("X-S").with_encoding(Encoding::Base64),
            headers([("x-s", &*signed("sha256", body, "base64"))]),
            true,
        ),
        ("another algorithm", new("X-Sig"), headers([("x-sig", &*signed("sha512", body, "hex"))]), false),
        ("cut", new("X-Sig"), headers([("x-sig", &signed("sha256", body, "hex")[..62])]), false),
        ("odd", new("X-Sig"), headers([("x-sig", &signed("sha256", body, "hex")[..63])]), false),
        ("empty", new("X-Sig"), headers([("x-sig", "")]), false),
        ("another secret", new("X-Sig"), headers([("x-sig", &*by_python("sha256", "other", body, "hex"))]), false),
        (
            "Stripe",
            new("Stripe-Signature").with_pairs("t", "v1"),
            headers([("stripe-signature", &*format!("t={NOW},v1={},v0=x,v1={stripe}", "0".repeat(64)))]),
            true,
        ),
        ("too old", new("Stripe-Signature").with_pairs("t", "v1"), headers([("stripe-signature", &*old)]), false),
        (
            "two times",
            new("Stripe-Signature").with_pairs("t", "v1"),
            headers([("stripe-signature", &*format!("t={NOW},t={},v1={stripe}", NOW + 1))]),
            false,
        ),
        ("no time", new("S").with_pairs("t", "v1"), headers([("s", &*format!("v1={stripe}"))]), false),
        ("no signature", new("S").with_pairs("t", "v1"), headers([("s", &*format!("t={NOW}"))]), false),
        (
            "Slack",
            new("X-Slack-Signature").with_prefix("v0=").with_timestamp_header("X-Slack-Time", "v0:{timestamp}:{body}"),
            headers([
                ("x-slack-signature", &*format!("v0={}", signed("sha256", &format!("v0:{NOW}:{body}"), "hex"))),
                ("x-slack-time", &*NOW.to_string()),
            ]),
            true,
        ),
        (
            "Slack, another time",
            new("X-Slack-Signature").with_prefix("v0=").with_timestamp_header("X-Slack-Time", "v0:{timestamp}:{body}"),
            headers([
                ("x-slack-signature", &*format!("v0={}", signed("sha256", &format!("v0:{NOW}:{body}"), "hex"))),
                ("x-slack-time", &*(NOW + 1).to_string()),
            ]),
            false,
        ),
    ] {
        let verified = verifier.verify_at(&headers, body.as_bytes(), at(NOW));
        assert_eq!(verified.is_ok(), expected, "{name}: {verified:?}");
    }
    // A signature that does not cover the body would do for any.
    let misspelt = new("X-Sig").with_timestamp_header("X-Time", "{timestamp}.{Body}");
    let signature = signed("sha256", &format!("{NOW}.{{Body}}"), "hex");
    let signed_time = headers([("x-sig", &*signature), ("x-time", &*NOW.to_string())]);
    assert_eq!(misspelt.verify_at(&signed_time, body.as_bytes(), at(NOW)), Err(WebhookError::BodyNotSigned));
    // One that does not cover the time would do for a request of last year, with a new header.
    let misspelt = new("X-Sig").with_timestamp_header("X-Time", "{body}");
    let signed_body = headers([("x-sig", &*signed("sha256", body, "hex")), ("x-time", &*NOW.to_string())]);
    assert_eq!(misspelt.verify_at(&signed_body, body.as_bytes(), at(NOW)), Err(WebhookError::TimeNotSigned));
    // Either secret is accepted while the service changes it.
    let both = new("X-Sig").with_secret("other").unwrap();
    for secret in ["s3cr3t", "other"] {
        let headers = headers([("x-sig", &*by_python("sha256", secret, body, "hex"))]);
        assert_eq!(both.verify(&headers, body.as_bytes()), Ok(()));
    }
    assert!(WebhookVerifier::new("X-Sig", "").is_err() && both.with_secret("").is_err());
}
