//! The caller of a call, for limits and the audit log.

use std::fmt;
use std::sync::Arc;

use crate::Identity;

/// The caller of a call: an identity, a connection, or unknown.
///
/// ```
/// use ops_runtime::access::Identity;
/// use ops_runtime::gateway::CallerId;
///
/// let ann = CallerId::of(Some(&Identity::new("ann")));
/// assert_eq!((ann.to_string(), ann.identity()), ("ann".to_owned(), Some("ann")));
/// assert_ne!(ann, CallerId::connection("ann"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallerId(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Identity(Arc<str>),
    Connection(Arc<str>),
    Anonymous,
}

impl CallerId {
    /// The caller with this identity. All callers without an identity are the same caller.
    pub fn of(identity: Option<&Identity>) -> Self {
        Self(identity.map_or(Kind::Anonymous, |identity| Kind::Identity(identity.id.as_str().into())))
    }

    /// A caller without an identity, identified by its connection.
    pub fn connection(name: impl Into<Arc<str>>) -> Self {
        Self(Kind::Connection(name.into()))
    }

    /// The id of the caller's identity; `None` without one.
    pub fn identity(&self) -> Option<&str> {
        match &self.0 {
            Kind::Identity(id) => Some(id),
            Kind::Connection(_) | Kind::Anonymous => None,
        }
    }

    /// The name of the connection that identifies the caller; `None` for any other caller.
    pub fn connection_name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Connection(name) => Some(name),
            Kind::Identity(_) | Kind::Anonymous => None,
        }
    }
}

impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Identity(id) => f.write_str(id),
            Kind::Connection(name) => write!(f, "connection {name}"),
            Kind::Anonymous => f.write_str("anonymous"),
        }
    }
}
