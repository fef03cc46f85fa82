//! The JSON of errors, access rules and identities.

use serde_core::de::{Deserialize, Deserializer, Error, MapAccess};
use serde_core::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::model::json::fields;
use crate::record::{Reader, Record, put};
use crate::{AccessControl, CallError, ErrorCode, ErrorDefinition, Identity, Text};

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Text::deserialize(d).map(Self::from)
    }
}

/// The answer of an MCP tool is not written: to send it along, put it in the details.
impl Record for CallError {
    const NAME: &'static str = "CallError";
    const FIELDS: &'static [&'static str] = &["code", "message", "details"];
    crate::__opaque!();

    fn index(name: &str) -> usize {
        match name {
            "code" => 0,
            "message" => 1,
            "details" => 2,
            _ => 3,
        }
    }

    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        let mut s = (None::<ErrorCode>, None::<Text>, None::<Value>);
        while let Some(i) = m.next()? {
            match i {
                0 => m.put(&mut s.0),
                1 => m.put(&mut s.1),
                2 => m.put(&mut s.2),
                _ => m.skip(),
            }?
        }
        match s {
            (Some(code), Some(message), details) => {
                Ok(Self::new(code, message).with_details(details.unwrap_or_default()))
            }
            s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none())])),
        }
    }

    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        put(m, "code", self.code())?;
        put(m, "message", &self.message())?;
        if !self.details().is_null() {
            put(m, "details", self.details())?;
        }
        Ok(())
    }
}
crate::__record!(CallError);

fields!(ErrorDefinition {
    "code" => code: required,
    "description" => description: required,
    "schema" => schema: required,
    "httpStatus" => http_status: some,
});

// Required even if there are no scopes: rules that got lost must not read as no rules.
fields!(AccessControl {
    "requiredScopes" => required_scopes: required,
    "requiredScopesAny" => required_scopes_any: filled,
    "resourceType" => resource_type: some,
    "resourceAction" => resource_action: some,
} checked whole);

/// Refuses half a rule for a resource: the other half may be there, with a typing error in its name.
fn whole<E: Error>(access: AccessControl) -> Result<AccessControl, E> {
    if access.resource_type.is_some() == access.resource_action.is_some() {
        return Ok(access);
    }
    Err(E::custom("an access rule has `resourceType` and `resourceAction`, or neither"))
}

fields!(Identity {
    "id" => id: required,
    "scopes" => scopes: required,
    "resources" => resources: filled,
} without token);
