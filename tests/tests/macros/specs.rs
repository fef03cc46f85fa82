//! What the attribute says, as data.

use std::time::Duration;

use ops_runtime::adapter::{Handler, Registration, Reply};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{Call, Operation, Subscribe, operation};

use crate::{Pet, registry};

/// Reserves a pet.
///
///     Until *midnight*.
#[operation(
    namespace = "shop",
    name = "pets.reserve/now",
    kind = query,
    version = "2.1.0",
    title = "Reserve",
    tags("pets", "stock"),
    scopes("pets:write", "pets:read"),
    scopes_any("staff", "admin"),
    resource(type = "pet", action = "reserve"),
    timeout = "250ms",
    errors(NotFound = 404, "sold-out" = 409, r#Busy),
    deprecated,
)]
async fn reserve(id: u64) -> u64 {
    id
}

#[test]
fn everything() {
    let spec: &OperationSpec = Reserve::SPEC;
    assert_eq!((&*spec.id, spec.namespace(), spec.name()), ("shop.pets.reserve/now", "shop", "pets.reserve/now"));
    assert_eq!(spec.kind, OperationKind::Query);
    assert_eq!((&*spec.version, spec.title.as_deref()), ("2.1.0", Some("Reserve")));
    assert_eq!(spec.description, "Reserves a pet.\n\n    Until *midnight*.");
    assert_eq!(spec.tags, ["pets", "stock"]);
    assert_eq!(spec.access.required_scopes, ["pets:write", "pets:read"]);
    assert_eq!(spec.access.required_scopes_any, ["staff", "admin"]);
    assert_eq!(spec.access.resource_type.as_deref(), Some("pet"));
    assert_eq!(spec.access.resource_action.as_deref(), Some("reserve"));
    assert_eq!(spec.timeout, Some(Duration::from_millis(250)));
    let errors: Vec<_> = spec.errors.iter().map(|error| (&*error.code, error.http_status)).collect();
    assert_eq!(errors, [("NotFound", Some(404)), ("sold-out", Some(409)), ("Busy", None)]);
    assert!(spec.deprecated);
    let _ = Reserve;
}

/// Before the file.
#[doc = include_str!("told.txt")]
#[operation(namespace = "shop")]
async fn told() {}

/** In a comment
 * with stars.
 */
#[operation(namespace = "shop")]
async fn starred() {}

#[test]
fn descriptions_are_those_of_the_documentation() {
    assert_eq!(Told::SPEC.description, "Before the file.\nTells what a file says.\n\n- in its lines");
    assert_eq!(Starred::SPEC.description, "In a comment\nwith stars.");
    let _ = (Told, Starred);
}

/// Codes without a const of their own name stand beside those with one.
#[operation(namespace = "shop", input = u8, output = u8, errors("out-of-stock", HTTPError, "404", "a-b", "a_b", Spec = 400))]
struct Coded;

#[test]
fn codes_are_consts() {
    assert_eq!((Coded::OUT_OF_STOCK, Coded::HTTP_ERROR), ("out-of-stock", "HTTPError"));
    assert_eq!((Coded::SPEC.id.as_ref(), Coded::SPEC.errors.len()), ("shop.Coded", 6));
    let _ = Coded;
}

#[operation(namespace = "shop")]
async fn r#move(id: u64) -> u64 {
    id
}

#[tokio::test]
async fn defaults() {
    let spec = <Move as Operation>::SPEC;
    assert_eq!((&*spec.id, spec.kind, &*spec.version), ("shop.move", OperationKind::Mutation, "1.0.0"));
    assert!(spec.access.is_open() && !spec.deprecated && spec.timeout.is_none() && spec.title.is_none());
    assert_eq!(registry(Move).execute::<Move>(MoveInput { id: 7 }).await.unwrap().into_data(), 7);
}

#[operation(namespace = "old")]
#[deprecated]
async fn outdated() {}

#[test]
fn deprecated_as_rust_says_it() {
    assert!(<Outdated as Operation>::SPEC.deprecated);
    let _ = Outdated;
}

/// Adopts a pet.
#[operation(namespace = "shop", kind = mutation, input = u64, output = Pet, errors(NotFound = 404))]
pub(crate) struct Adopt;

#[operation(namespace = "shop", kind = subscription, input = Vec<u64>, output = Pet)]
#[derive(Debug)]
struct Follow;

fn is_call<Op: Call>() {}
fn is_subscription<Op: Subscribe>() {}

#[tokio::test]
async fn a_spec_whose_handler_is_registered_apart() {
    is_call::<Adopt>();
    is_subscription::<Follow>();
    assert_eq!(Adopt::SPEC.description, "Adopts a pet.");
    assert_eq!(Adopt::SPEC.id, "shop.Adopt");
    assert_eq!(format!("{Follow:?}"), "Follow");
    let registry =
        registry(Registration::call::<Adopt, _, _>(|id, _| async move { Ok(Reply::Value(Pet::new(id, "Tom"))) }));
    assert_eq!(registry.execute::<Adopt>(1_u64).await.unwrap().into_data(), Pet::new(1, "Tom"));
    let apart = ops_runtime::Registry::new();
    apart.register_spec(Adopt::SPEC).unwrap();
    let handler = Handler::typed::<Adopt, _, _>(|id, _| async move { Ok(Reply::Value(Pet::new(id, "Kit"))) });
    apart.register_handler("shop.Adopt", handler).unwrap();
    assert_eq!(apart.execute::<Adopt>(2_u64).await.unwrap().into_data(), Pet::new(2, "Kit"));
    let _ = Adopt;
}
