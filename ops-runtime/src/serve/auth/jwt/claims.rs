//! Checks the claims of a token (RFC 7519, section 4.1), and determines its holder.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::key::JwtAlgorithm;
use crate::Identity;

type Claims = Map<String, Value>;
type Identify = dyn Fn(&Claims) -> Option<Identity> + Send + Sync;

/// Which tokens are accepted.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) issuers: Vec<String>,
    pub(super) audiences: Vec<String>,
    /// `None` if only the keys decide.
    pub(super) algorithms: Option<Vec<JwtAlgorithm>>,
    pub(super) leeway: Duration,
    pub(super) identity: Option<Arc<Identify>>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            audiences: Vec::new(),
            algorithms: None,
            leeway: Duration::from_secs(60),
            identity: None,
        }
    }
}

impl Rules {
    pub(super) fn allows(&self, algorithm: JwtAlgorithm) -> bool {
        self.algorithms.as_ref().is_none_or(|algorithms| algorithms.contains(&algorithm))
    }

    /// Checks the claims of a token whose signature is valid.
    ///
    /// # Errors
    /// The reason, for the holder of the token.
    pub(super) fn check(&self, claims: &Claims) -> Result<(), &'static str> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.check_at(claims, now)
    }

    fn check_at(&self, claims: &Claims, now: Duration) -> Result<(), &'static str> {
        let (now, leeway) = (now.as_secs_f64(), self.leeway.as_secs_f64());
        let expires = claims.get("exp").and_then(Value::as_f64).ok_or("the token has no time at which it expires")?;
        if now >= expires + leeway {
            return Err("the token has expired");
        }
        if let Some(begins) = claims.get("nbf")
            && begins.as_f64().is_none_or(|begins| now + leeway < begins)
        {
            return Err("the token is not valid yet");
        }
        let is_one_of =
            |value: &Value, all: &[String]| value.as_str().is_some_and(|own| all.iter().any(|one| one == own));
        if !self.issuers.is_empty() && !claims.get("iss").is_some_and(|issuer| is_one_of(issuer, &self.issuers)) {
            return Err("the token is of another issuer");
        }
        // A token with an audience is only for that audience; a server without a configured audience is none.
        let is_for_us = match claims.get("aud") {
            None => self.audiences.is_empty(),
            Some(Value::Array(all)) => all.iter().any(|one| is_one_of(one, &self.audiences)),
            Some(one) => is_one_of(one, &self.audiences),
        };
        if is_for_us { Ok(()) } else { Err("the token is for another audience") }
    }

    /// The holder of a token.
    pub(super) fn identify(&self, claims: &Claims) -> Option<Identity> {
        if let Some(identity) = &self.identity {
            return identity(claims);
        }
        let mut identity = Identity::new(claims.get("sub")?.as_str().filter(|id| !id.is_empty())?);
        for claim in ["scope", "scp", "permissions"] {
            let scopes: Vec<&str> = match claims.get(claim) {
                Some(Value::String(text)) => text.split(' ').filter(|scope| !scope.is_empty()).collect(),
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            for scope in scopes {
                if !identity.scopes.iter().any(|own| own == scope) {
                    identity.scopes.push(scope.to_owned());
                }
            }
        }
        Some(identity)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Claims {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn times_issuers_and_audiences() {
        const NOW: u64 = 1_000_000;
        let open = Rules::default();
        let ours =
            Rules { issuers: vec!["a".into(), "b".into()], audiences: vec!["x".into(), "y".into()], ..open.clone() };
        let expired = Err("the token has expired");
        let early = Err("the token is not valid yet");
        let issuer = Err("the token is of another issuer");
        let audience = Err("the token is for another audience");
        let table = [
            (&open, json!({ "exp": NOW + 1 }), Ok(())),
            (&open, json!({ "exp": NOW - 59 }), Ok(())),
            (&open, json!({ "exp": NOW - 60 }), expired),
            (&open, json!({ "exp": (NOW as f64) + 0.5 }), Ok(())),
            (&open, json!({ "exp": -1e308 }), expired),
            (&open, json!({ "exp": "soon" }), Err("the token has no time at which it expires")),
            (&open, json!({}), Err("the token has no time at which it expires")),
            (&open, json!({ "exp": NOW, "nbf": NOW + 60 }), Ok(())),
            (&open, json!({ "exp": NOW, "nbf": NOW + 61 }), early),
            (&open, json!({ "exp": NOW, "nbf": null }), early),
            (&open, json!({ "exp": NOW, "aud": "x" }), audience),
            (&open, json!({ "exp": NOW, "aud": [] }), audience),
            (&ours, json!({ "exp": NOW, "iss": "b", "aud": "y" }), Ok(())),
            (&ours, json!({ "exp": NOW, "iss": "b", "aud": ["z", "x"] }), Ok(())),
            (&ours, json!({ "exp": NOW, "iss": "b", "aud": ["z", 1] }), audience),
            (&ours, json!({ "exp": NOW, "iss": "b" }), audience),
            (&ours, json!({ "exp": NOW, "iss": "A", "aud": "y" }), issuer),
            (&ours, json!({ "exp": NOW, "iss": ["a"], "aud": "y" }), issuer),
            (&ours, json!({ "exp": NOW, "aud": "y" }), issuer),
            // With two faults, the time comes first.
            (&ours, json!({ "exp": NOW - 61, "aud": "z" }), expired),
        ];
        for (rules, value, expected) in table {
            assert_eq!(rules.check_at(&claims(value.clone()), Duration::from_secs(NOW)), expected, "{value}");
        }
    }

    #[test]
    fn identities() {
        let rules = Rules::default();
        let all = json!({ "sub": "ann", "scope": "a  b", "scp": ["b", "c", 1], "permissions": "d" });
        let expected = ["a", "b", "c", "d"].iter().fold(Identity::new("ann"), |own, scope| own.with_scope(*scope));
        assert_eq!(rules.identify(&claims(all)), Some(expected));
        for nobody in [json!({}), json!({ "sub": "" }), json!({ "sub": 7 })] {
            assert_eq!(rules.identify(&claims(nobody)), None);
        }
    }
}
