"""Writes jwt.json: keys, tokens that are valid by them, and tokens that are not. Needs the package `cryptography`."""

import base64
import hashlib
import hmac
import json
import pathlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
SECRET = bytes(range(64))
CLAIMS = {
    "iss": "https://login.example",
    "aud": "pets",
    "sub": "ann",
    "scope": "pets:read me:read",
    "exp": 4102444800,
}

rsa_key, weak_key = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 1024)
p256_key, p384_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ed_key, other_key = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, length=None):
    return text(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


def pem(key):
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, info).decode()


def der(key):
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.DER, info)


def raw(key):
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def sign(algorithm, message, key):
    kind, bits = algorithm[:2], algorithm[2:]
    if kind == "HS":
        return hmac.new(key, message, getattr(hashlib, f"sha{bits}")).digest()
    if kind == "RS":
        return key.sign(message, padding.PKCS1v15(), HASHES[bits])
    if kind == "PS":
        length = HASHES[bits].digest_size
        return key.sign(message, padding.PSS(padding.MGF1(HASHES[bits]), length), HASHES[bits])
    if kind == "ES":
        r, s = decode_dss_signature(key.sign(message, ec.ECDSA(HASHES[bits])))
        length = key.curve.key_size // 8
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")
    return key.sign(message)


def token(algorithm, key, header=None, claims=None, signature=None):
    header = {"alg": algorithm, "typ": "JWT"} | (header or {})
    claims = CLAIMS if claims is None else claims
    message = f"{text(json.dumps(header).encode())}.{text(json.dumps(claims).encode())}".encode()
    signature = sign(algorithm, message, key) if signature is None else signature
    return f"{message.decode()}.{text(signature)}"


def but(**changes):
    return {name: value for name, value in (CLAIMS | changes).items() if value is not None}


def point(key, name, curve, length):
    numbers = key.public_key().public_numbers()
    return {"kty": "EC", "crv": curve, "kid": name, "x": number(numbers.x, length), "y": number(numbers.y, length)}


rsa_numbers = rsa_key.public_key().public_numbers()
rsa_jwk = {"kty": "RSA", "kid": "rsa", "use": "sig", "n": number(rsa_numbers.n), "e": number(rsa_numbers.e)}
ed_jwk = {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "x": text(raw(ed_key))}
jwks = [
    {"kty": "new", "kid": "unknown"},
    rsa_jwk | {"kid": "encryption", "use": "enc"},
    rsa_jwk,
    point(p256_key, "p256", "P-256", 32) | {"alg": "ES256", "key_ops": ["verify"]},
    point(p384_key, "p384", "P-384", 48),
    ed_jwk,
]
keys = {"rsa": rsa_key, "p256": p256_key, "p384": p384_key, "ed": ed_key}
good, bad = {}, {}
for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]:
    good[algorithm] = ("rsa", token(algorithm, rsa_key, {"kid": "rsa"}))
good["ES256"] = ("p256", token("ES256", p256_key, {"kid": "p256"}))
good["ES384"] = ("p384", token("ES384", p384_key, {"kid": "p384"}))
good["EdDSA"] = ("ed", token("EdDSA", ed_key, {"kid": "ed"}))
good["Ed25519"] = ("ed", token("EdDSA", ed_key, {"alg": "EdDSA", "typ": "at+jwt"}))
good["a key without an id"] = ("rsa", token("RS256", rsa_key))
good["several audiences"] = ("ed", token("EdDSA", ed_key, claims=but(aud=["cats", "pets"])))
secret = {name: token(name, SECRET) for name in ["HS256", "HS384", "HS512"]}

bad["expired"] = token("EdDSA", ed_key, claims=but(exp=1700000000))
bad["without an end"] = token("EdDSA", ed_key, claims=but(exp=None))
bad["not yet valid"] = token("EdDSA", ed_key, claims=but(nbf=4102444700))
bad["another audience"] = token("EdDSA", ed_key, claims=but(aud="cats"))
bad["no audience"] = token("EdDSA", ed_key, claims=but(aud=None))
bad["another issuer"] = token("EdDSA", ed_key, claims=but(iss="https://login.example/"))
bad["nobody"] = token("EdDSA", ed_key, claims=but(sub=None))
bad["expired and for another audience"] = token("EdDSA", ed_key, claims=but(exp=1, aud="cats"))
bad["another key"] = token("EdDSA", other_key, {"kid": "ed"})
bad["an unknown key"] = token("EdDSA", other_key, {"kid": "other"})
bad["the id of another key"] = token("EdDSA", ed_key, {"kid": "p256"})
bad["a key that it brings"] = token("EdDSA", other_key, {"jwk": ed_jwk | {"x": text(raw(other_key))}})
bad["a URL of keys that it brings"] = token("EdDSA", other_key, {"jku": "https://evil.example/jwks"})
bad["other claims"] = ".".join(
    [good["EdDSA"][1].split(".")[0], text(json.dumps(but(sub="root")).encode()), good["EdDSA"][1].split(".")[2]]
)
for name in ["none", "None", "NONE", "nOnE", ""]:
    bad[f"alg `{name}` without a signature"] = token(name, None, signature=b"")
    bad[f"alg `{name}` with a signature"] = token(name, None, signature=b"x" * 64)
bad["no signature"] = token("EdDSA", ed_key, signature=b"")
bad["a signature of zeros"] = token("ES256", p256_key, {"kid": "p256"}, signature=bytes(64))
bad["a signature as DER"] = token(
    "ES256", p256_key, {"kid": "p256"}, signature=p256_key.sign(b"x", ec.ECDSA(hashes.SHA256()))
)
bad["an algorithm that the key is not for"] = token("ES384", p384_key, {"kid": "p384", "alg": "ES256"})
bad["an extension"] = token("EdDSA", ed_key, {"crit": ["exp"]})
bad["another type"] = token("EdDSA", ed_key, {"typ": "logout+jwt"})
# The public key is taken for the secret of an HMAC.
for name, key in keys.items():
    public = {"pem": pem(key).encode(), "trimmed pem": pem(key).strip().encode(), "der": der(key)}
    if name == "ed":
        public["raw"] = raw(key)
    for form, data in public.items():
        for algorithm in ["HS256", "HS384", "HS512"]:
            bad[f"{algorithm} with the {form} of {name}"] = token(algorithm, data, {"kid": name})

here = pathlib.Path(__file__).parent
content = {
    "secret": text(SECRET),
    "pem": {name: pem(key) for name, key in keys.items()},
    "pkcs1": rsa_key.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1)
    .decode(),
    "weak": pem(weak_key),
    "jwks": {"keys": jwks},
    "good": {name: {"key": key, "token": text} for name, (key, text) in good.items()},
    "secretly": secret,
    "bad": bad,
    "scopeless": token("EdDSA", ed_key, claims=but(scope="other")),
}
(here / "jwt.json").write_text(json.dumps(content, indent=1) + "\n")
