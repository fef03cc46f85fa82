//! Keys that verify signatures (RFC 7517, RFC 7518), and the algorithms that each may be used with.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use ring::{hkdf::KeyType as _, hmac, signature::RsaParameters};
use serde_json::Value;

use super::token::Token;

/// The signature algorithm of a token (RFC 7518, section 3.1, and RFC 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// `EdDSA` with Ed25519.
    EdDsa,
}

const NAMES: [(&str, JwtAlgorithm); 13] = [
    ("HS256", JwtAlgorithm::Hs256),
    ("HS384", JwtAlgorithm::Hs384),
    ("HS512", JwtAlgorithm::Hs512),
    ("RS256", JwtAlgorithm::Rs256),
    ("RS384", JwtAlgorithm::Rs384),
    ("RS512", JwtAlgorithm::Rs512),
    ("PS256", JwtAlgorithm::Ps256),
    ("PS384", JwtAlgorithm::Ps384),
    ("PS512", JwtAlgorithm::Ps512),
    ("ES256", JwtAlgorithm::Es256),
    ("ES384", JwtAlgorithm::Es384),
    ("EdDSA", JwtAlgorithm::EdDsa),
    // RFC 9864, section 2.2.
    ("Ed25519", JwtAlgorithm::EdDsa),
];

impl JwtAlgorithm {
    /// The algorithm with this name; `None` if unknown.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(own, _)| *own == name).map(|(_, algorithm)| *algorithm)
    }

    fn hmac(self) -> Option<hmac::Algorithm> {
        match self {
            Self::Hs256 => Some(hmac::HMAC_SHA256),
            Self::Hs384 => Some(hmac::HMAC_SHA384),
            Self::Hs512 => Some(hmac::HMAC_SHA512),
            _ => None,
        }
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
            _ => None,
        }
    }
}

/// Limit of the keys of a set; more are skipped.
const MAX_KEYS: usize = 100;

/// The keys of an issuer.
pub(super) struct KeySet(pub(super) Vec<Key>);

/// A key with which signatures are verified.
pub(super) struct Key {
    id: Option<String>,
    /// The only algorithm that the key may be used with, if it names one.
    algorithm: Option<JwtAlgorithm>,
    material: Material,
}

enum Material {
    Secret(Vec<u8>),
    /// Modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// Points, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl KeySet {
    /// The keys of a JSON Web Key Set. Secrets are skipped unless they are requested: a fetched secret would be public.
    ///
    /// # Errors
    /// If there is no usable key.
    pub(super) fn from_jwks(jwks: &Value, with_secrets: bool) -> Result<Self, &'static str> {
        let all = jwks.get("keys").and_then(Value::as_array).ok_or("a JSON Web Key Set has a list `keys`")?;
        let is_wanted = |key: &Key| with_secrets || !matches!(key.material, Material::Secret(_));
        let keys: Vec<Key> = all.iter().filter_map(Key::from_jwk).filter(is_wanted).take(MAX_KEYS).collect();
        if keys.is_empty() { Err("the JSON Web Key Set has no key that can be used") } else { Ok(Self(keys)) }
    }

    /// The keys that may have signed a token. A key without an id may have signed any.
    fn of<'a>(&'a self, token: &'a Token<'_>) -> impl Iterator<Item = &'a Key> {
        let is_named = |key: &Key| key.id.is_none() || token.key_id.is_none() || key.id == token.key_id;
        self.0.iter().filter(move |key| is_named(key) && key.takes(token))
    }

    /// True if one of the keys may have signed a token.
    #[cfg(feature = "http")]
    pub(super) fn has_key_of(&self, token: &Token<'_>) -> bool {
        self.of(token).next().is_some()
    }

    /// True if one of these keys made the signature of a token.
    pub(super) fn verify(&self, token: &Token<'_>) -> bool {
        self.of(token).any(|key| key.verify(token))
    }
}

impl Key {
    fn new(material: Material) -> Self {
        Self { id: None, algorithm: None, material }
    }

    pub(super) fn from_secret(secret: &[u8]) -> Result<Self, &'static str> {
        if secret.len() < 32 {
            return Err("a secret for tokens has at least 32 bytes, from a random source");
        }
        Ok(Self::new(Material::Secret(secret.to_vec())))
    }

    pub(super) fn from_pem(pem: &str) -> Result<Self, &'static str> {
        let (_, rest) = pem.split_once("-----BEGIN ").ok_or("the key is not PEM: `-----BEGIN PUBLIC KEY-----`")?;
        let (label, rest) = rest.split_once("-----").unwrap_or_default();
        let is_rsa = match label {
            "PUBLIC KEY" => false,
            "RSA PUBLIC KEY" => true,
            _ => return Err("the PEM text has no public key: `openssl pkey -in FILE -pubout` makes one"),
        };
        let text: String = rest.split("-----END").next().unwrap_or_default().split_ascii_whitespace().collect();
        let der = STANDARD.decode(text).map_err(|_| "the key between the lines of the PEM text is not base64")?;
        let material = if is_rsa { der::rsa(&der) } else { der::public_key(&der) };
        let known = "the key is none of RSA with 2048 to 8192 bits, P-256, P-384 and Ed25519";
        material.filter(Material::is_usable).map(Self::new).ok_or(known)
    }

    /// A key of a set; `None` if it is unknown, or not for verifying signatures.
    fn from_jwk(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
        if jwk.get("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let verifies = |all: &Value| all.as_array().is_some_and(|all| all.iter().any(|one| one == "verify"));
        if jwk.get("key_ops").is_some_and(|all| !verifies(all)) {
            return None;
        }
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => Some(JwtAlgorithm::named(name.as_str()?)?),
        };
        let point = || Some([vec![4], bytes("x")?, bytes("y")?].concat());
        let material = match (text("kty")?, text("crv")) {
            ("oct", _) => Material::Secret(bytes("k")?),
            ("RSA", _) => Material::Rsa(unsigned(&bytes("n")?), unsigned(&bytes("e")?)),
            ("EC", Some("P-256")) => Material::P256(point()?),
            ("EC", Some("P-384")) => Material::P384(point()?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x")?),
            _ => return None,
        };
        let key = Self { id: text("kid").map(str::to_owned), algorithm, material };
        key.material.is_usable().then_some(key)
    }

    /// True if the key may be used with the algorithm of a token, which depends on its type.
    fn takes(&self, token: &Token<'_>) -> bool {
        use JwtAlgorithm as A;
        let of_type = match &self.material {
            Material::Secret(secret) => token.algorithm.hmac().is_some_and(|hmac| secret.len() >= hmac.len()),
            Material::Rsa(..) => token.algorithm.rsa().is_some(),
            Material::P256(_) => token.algorithm == A::Es256,
            Material::P384(_) => token.algorithm == A::Es384,
            Material::Ed25519(_) => token.algorithm == A::EdDsa,
        };
        of_type && self.algorithm.is_none_or(|own| own == token.algorithm)
    }

    fn verify(&self, token: &Token<'_>) -> bool {
        let Token { message, signature, .. } = token;
        let by = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match &self.material {
            Material::Secret(secret) => token
                .algorithm
                .hmac()
                .is_some_and(|hmac| hmac::verify(&hmac::Key::new(hmac, secret), message, signature).is_ok()),
            Material::Rsa(n, e) => token
                .algorithm
                .rsa()
                .is_some_and(|rsa| RsaPublicKeyComponents { n, e }.verify(rsa, message, signature).is_ok()),
            Material::P256(point) => by(&signature::ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => by(&signature::ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(key) => by(&signature::ED25519, key),
        }
    }
}

impl Material {
    /// True if it has the required length.
    fn is_usable(&self) -> bool {
        match self {
            Self::Secret(secret) => secret.len() >= 32,
            Self::Rsa(n, e) => (256..=1024).contains(&n.len()) && !e.is_empty(),
            Self::P256(point) => point.len() == 65 && point.first() == Some(&4),
            Self::P384(point) => point.len() == 97 && point.first() == Some(&4),
            Self::Ed25519(key) => key.len() == 32,
        }
    }
}

/// A number without leading zeros.
fn unsigned(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().skip_while(|byte| *byte == 0).collect()
}

/// Public keys as DER: `SubjectPublicKeyInfo` (RFC 5280, section 4.1.2.7) and `RSAPublicKey` (RFC 8017, appendix A.1.1).
mod der {
    use super::{Material, unsigned};

    const INTEGER: u8 = 2;
    const BITS: u8 = 3;
    const SEQUENCE: u8 = 0x30;

    // Algorithms with their parameters: rsaEncryption, ecPublicKey with prime256v1 or secp384r1, and Ed25519.
    const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    const P256: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    const P384: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x22];
    const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];

    pub(super) fn public_key(mut der: &[u8]) -> Option<Material> {
        let mut info = take(&mut der, SEQUENCE)?;
        let algorithm = take(&mut info, SEQUENCE)?;
        // The first byte is the number of unused bits.
        let key = take(&mut info, BITS)?.strip_prefix(&[0])?;
        match algorithm {
            RSA => rsa(key),
            P256 => Some(Material::P256(key.to_vec())),
            P384 => Some(Material::P384(key.to_vec())),
            ED25519 => Some(Material::Ed25519(key.to_vec())),
            _ => None,
        }
    }

    pub(super) fn rsa(mut der: &[u8]) -> Option<Material> {
        let mut key = take(&mut der, SEQUENCE)?;
        Some(Material::Rsa(unsigned(take(&mut key, INTEGER)?), unsigned(take(&mut key, INTEGER)?)))
    }

    /// Reads a value of a type.
    fn take<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
        let (length, rest) = input.strip_prefix(&[tag])?.split_first()?;
        let (length, rest) = match usize::from(*length) {
            short @ 0..0x80 => (short, rest),
            long => {
                let (bytes, rest) = rest.split_at_checked(long & 0x7f).filter(|(bytes, _)| bytes.len() <= 3)?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
        };
        let (value, rest) = rest.split_at_checked(length)?;
        *input = rest;
        Some(value)
    }
}
