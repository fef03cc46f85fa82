//! The errors that operations declare, as enums by status.

use std::collections::HashMap;

use ops_runtime::spec::ErrorDefinition;

use crate::names::Scope;
use crate::types::Type;

/// The name of an operation's errors.
pub(crate) struct Errors {
    pub(crate) name: String,
    /// The enum of another operation that declares the same; `None` if this has an enum of its own.
    pub(crate) same_as: Option<String>,
}

impl Errors {
    /// The enum that lists them.
    pub(crate) fn declared_as(&self) -> &str {
        self.same_as.as_deref().unwrap_or(&self.name)
    }
}

/// The enum of an operation's errors.
pub(crate) struct ErrorEnum {
    pub(crate) name: String,
    pub(crate) variants: Vec<ErrorVariant>,
    /// The variant for any other response.
    pub(crate) rest: String,
}

/// An error, or a range of them.
pub(crate) struct ErrorVariant {
    /// The statuses as a pattern.
    pub(crate) statuses: String,
    /// The statuses as documentation.
    pub(crate) said: String,
    /// The status with which a server responds.
    pub(crate) answered: u16,
    pub(crate) ident: String,
    pub(crate) body: Type,
}

/// Equal enums, by their content.
#[derive(Default)]
pub(crate) struct ErrorEnums {
    pub(crate) all: Vec<ErrorEnum>,
    known: HashMap<Vec<(String, Type)>, String>,
}

impl ErrorEnums {
    /// Names the errors of an operation; `None` if it declares none that a status distinguishes.
    pub(crate) fn add(
        &mut self,
        operation: &str,
        errors: &[ErrorDefinition],
        bodies: &[Type],
        scope: &mut Scope,
    ) -> Option<Errors> {
        let mut declared: Vec<(Statuses, &Type)> =
            errors.iter().zip(bodies).filter_map(|(error, body)| Some((Statuses::of(error)?, body))).collect();
        // More specific statuses come first.
        declared.sort_by_key(|(statuses, _)| *statuses);
        declared.dedup_by_key(|(statuses, _)| *statuses);
        if declared.is_empty() {
            return None;
        }
        let name = scope.take_camel(&format!("{}Error", operation.trim_end_matches('_')));
        let key: Vec<(String, Type)> =
            declared.iter().map(|(statuses, body)| (statuses.pattern(), (*body).clone())).collect();
        if let Some(first) = self.known.get(&key) {
            return Some(Errors { name, same_as: Some(first.clone()) });
        }
        self.known.insert(key, name.clone());
        let mut idents = Scope::default();
        let variants = declared.into_iter().map(|(statuses, body)| ErrorVariant {
            statuses: statuses.pattern(),
            said: statuses.said(),
            answered: statuses.answered(),
            ident: idents.take_camel(&statuses.name()),
            body: body.clone(),
        });
        let variants = variants.collect();
        self.all.push(ErrorEnum { name: name.clone(), variants, rest: idents.take_camel("Undeclared") });
        Some(Errors { name, same_as: None })
    }
}

/// The statuses of an error, the most exact first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Statuses {
    Exact(u16),
    Class(u16),
    Any,
}

impl Statuses {
    fn of(error: &ErrorDefinition) -> Option<Self> {
        if let Some(status) = error.http_status {
            return Some(Self::Exact(status));
        }
        match error.code.strip_prefix("HTTP_")? {
            "ERROR" => Some(Self::Any),
            class => class.strip_suffix("XX")?.parse().ok().filter(|class| (1..=9).contains(class)).map(Self::Class),
        }
    }

    fn pattern(self) -> String {
        match self {
            Self::Exact(status) => status.to_string(),
            Self::Class(class) => format!("{class}00..={class}99"),
            Self::Any => "0..".to_owned(),
        }
    }

    fn said(self) -> String {
        match self {
            Self::Exact(status) => format!("Status {status}."),
            Self::Class(class) => format!("Status {class}00 to {class}99."),
            Self::Any => "Any status without a variant of its own.".to_owned(),
        }
    }

    /// The first status of a range; for any status, 500.
    fn answered(self) -> u16 {
        match self {
            Self::Exact(status) => status,
            Self::Class(class) => class * 100,
            Self::Any => 500,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Exact(status) => match reason(status) {
                Some(reason) => reason.to_owned(),
                None => format!("Status{status}"),
            },
            Self::Class(3) => "Redirection".to_owned(),
            Self::Class(4) => "ClientError".to_owned(),
            Self::Class(5) => "ServerError".to_owned(),
            Self::Class(class) => format!("Status{class}xx"),
            Self::Any => "Default".to_owned(),
        }
    }
}

/// The reason phrase of a status as a variant; the phrases are those that messages of errors show.
fn reason(status: u16) -> Option<&'static str> {
    Some(match status {
        300 => "MultipleChoices",
        301 => "MovedPermanently",
        302 => "Found",
        303 => "SeeOther",
        304 => "NotModified",
        305 => "UseProxy",
        307 => "TemporaryRedirect",
        308 => "PermanentRedirect",
        400 => "BadRequest",
        401 => "Unauthorized",
        402 => "PaymentRequired",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        407 => "ProxyAuthenticationRequired",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "LengthRequired",
        412 => "PreconditionFailed",
        413 => "PayloadTooLarge",
        414 => "UriTooLong",
        415 => "UnsupportedMediaType",
        416 => "RangeNotSatisfiable",
        417 => "ExpectationFailed",
        418 => "ImATeapot",
        421 => "MisdirectedRequest",
        422 => "UnprocessableEntity",
        423 => "Locked",
        424 => "FailedDependency",
        425 => "TooEarly",
        426 => "UpgradeRequired",
        428 => "PreconditionRequired",
        429 => "TooManyRequests",
        431 => "RequestHeaderFieldsTooLarge",
        451 => "UnavailableForLegalReasons",
        500 => "InternalServerError",
        501 => "NotImplemented",
        502 => "BadGateway",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        505 => "HttpVersionNotSupported",
        507 => "InsufficientStorage",
        508 => "LoopDetected",
        511 => "NetworkAuthenticationRequired",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_with_the_same_errors_share_an_enum() {
        let errors = [
            ErrorDefinition::new("HTTP_ERROR"),
            ErrorDefinition::new("HTTP_4XX"),
            ErrorDefinition::new("HTTP_404").with_http_status(404),
        ];
        let bodies = [Type::Value, Type::String, Type::Unit];
        let (mut enums, mut scope) = (ErrorEnums::default(), Scope::with(&["ShowError"]));
        let first = enums.add("Show", &errors, &bodies, &mut scope).unwrap();
        let second = enums.add("Hide", &errors, &bodies, &mut scope).unwrap();
        assert_eq!((first.name.as_str(), first.same_as.as_deref()), ("ShowError2", None));
        assert_eq!((second.name.as_str(), second.same_as.as_deref()), ("HideError", Some("ShowError2")));
        let other = enums.add("Ok_", &errors[1..], &bodies[1..], &mut scope).unwrap();
        assert_eq!((other.name.as_str(), other.same_as), ("OkError", None));
        assert!(enums.add("Feed", &[ErrorDefinition::new("HUNGRY")], &[Type::Value], &mut scope).is_none());
        let variants: Vec<_> = enums.all[0]
            .variants
            .iter()
            .map(|v| (v.statuses.as_str(), v.answered, v.ident.as_str(), &v.body))
            .collect();
        assert_eq!(
            variants,
            [
                ("404", 404, "NotFound", &Type::Unit),
                ("400..=499", 400, "ClientError", &Type::String),
                ("0..", 500, "Default", &Type::Value)
            ]
        );
    }
}
