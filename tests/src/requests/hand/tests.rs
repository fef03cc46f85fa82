//! What the comparison must notice: generated code as it should not be.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use super::Examined;
use super::code::{Code, Shape, Type};
use super::pairs::Pair;
use super::write::{self, Writer};
use crate::requests::Source;

/// A module with one type, `Pet`, and one operation, as the generator writes them.
const SOURCE: &str = r##"
use ::ops_runtime::__generated as ops;
pub struct ShowPet;
impl ops::Operation for ShowPet {
    type Input = Pet;
    type Output = ();
    const SPEC: &'static ops::OperationSpec = &SHOW_PET;
}
static SHOW_PET: ops::OperationSpec = ops::OperationSpec::query("shop.showPet").with_title("x");
ops::methods! {
pub trait Methods: ops::Caller + Sized {
    fn show_pet(&self, input: impl Into<Pet>) -> ops::Execute<'_, Self, ShowPet> { ops::Execute::new(self, input) }
}
impl<C: ops::Caller> Methods for C {}
}
pub struct Pet { pub id: i64, pub name: String, pub status: Option<Status>, pub owner: Option<Owner> }
pub enum Status { Sold, Other(String) }
pub enum Owner { Ann(Box<Pet>), Number(i64), Unknown(ops::Value) }
mod impls {
    impl Record for super::Pet {
        const FIELDS: &'static [&'static str] = &["id", "pet name", "status", "owner", "kind"];
        const CONSTANTS: &'static [Literal<'static>] = &[Literal::Text("pet")];
        type Slots = (Required<i64>, Required<String>, Optional<super::Status>, Optional<super::Owner>);
    }
    ops::table!(super::Pet);
    impl super::Pet {
        pub fn new(ARGUMENTS) -> Self { todo!() }
    }
    ops::names!(super::Status { "sold" => Sold, _ => Other });
    ops::tagged!(super::Owner["kind"] { "pet" | "ann" => Ann, 7 => Number, _ => Unknown });
    impl From<i64> for super::Owner { fn from(value: i64) -> Self { todo!() } }
}
"##;

fn code(arguments: &str) -> Code {
    Code::read(&SOURCE.replace("ARGUMENTS", arguments)).unwrap()
}

const RIGHT: &str = "id: i64, name: impl Into<String>";

/// The places of the faults of `Pet`, where the document requires its number, its name and its kind.
fn faults(arguments: &str) -> Vec<String> {
    let code = code(arguments);
    let Some(Shape::Record(record)) = code.types.get("Pet") else { panic!("no record") };
    let names = ["id", "pet name", "status", "owner", "kind"].map(str::to_owned);
    let required: BTreeSet<String> = ["id", "pet name", "kind"].map(str::to_owned).into();
    let pair = Pair { schema: None, properties: names.to_vec(), required };
    let mut examined = Examined::default();
    examined.record("Pet", record, Some(&pair));
    assert_eq!((examined.types, examined.right), (1, usize::from(examined.faults.is_empty())));
    examined.faults.into_iter().map(|fault| fault.difference.place).collect()
}

#[test]
fn what_new_asks_for_is_compared() {
    assert_eq!(faults(RIGHT), [""; 0]);
    assert_eq!(faults("id: i64"), ["pet name", "new"]);
    assert_eq!(faults("name: impl Into<String>, id: i64"), ["order", "new"]);
    assert_eq!(faults("id: i64, name: impl Into<String>, status: impl Into<super::Status>"), ["new"]);
    assert_eq!(faults("id: i64, name: impl Into<String>, more: i64"), ["new"]);
    assert_eq!(faults(""), ["id", "pet name", "default", "new"]);
}

#[test]
fn a_module_is_read_as_its_user_reads_it() {
    let code = code(RIGHT);
    let [operation] = code.operations.as_slice() else { panic!("{:?}", code.operations) };
    assert_eq!(
        (operation.id.as_str(), operation.method.as_str(), operation.takes_input),
        ("shop.showPet", "show_pet", true)
    );
    assert_eq!((code.methods.as_str(), code.sent()), ("Methods", vec!["Pet", "Status", "Owner"]));
    assert_eq!(code.conversions, [("Owner".to_owned(), Type::Integer)]);
    let Some(Shape::Record(record)) = code.types.get("Pet") else { panic!("no record") };
    assert_eq!((record.constants(), record.values.as_slice()), (&["kind".to_owned()][..], &[json!("pet")][..]));
    assert!(Code::read("pub struct {").is_err());
}

#[test]
fn values_are_written_by_new_and_with_nothing_else() {
    let code = code(RIGHT);
    let writer = Writer { code: &code, module: "api" };
    let pet = Type::Named("Pet".to_owned());
    for (value, wanted, extra) in [
        (json!({ "id": 7, "pet name": "R\"x", "kind": "pet" }), r#"api::Pet::new(7, "R\"x")"#, &[][..]),
        (
            json!({ "id": 7, "pet name": "Rex", "kind": "pet", "status": "sold" }),
            r#"api::Pet { status: Some(api::Status::Sold), ..api::Pet::new(7, "Rex") }"#,
            &["Pet.status"],
        ),
        (
            json!({ "id": 7, "pet name": "Rex", "kind": "pet", "status": "lost", "owner": { "kind": "other" } }),
            r#"api::Pet { status: Some(api::Status::Other("lost".to_owned())), owner: Some(api::Owner::Unknown(hand_kit::json("{\"kind\":\"other\"}"))), ..api::Pet::new(7, "Rex") }"#,
            &["Pet.status", "Pet.owner"],
        ),
    ] {
        let written = writer.value(&pet, &value).unwrap();
        assert_eq!((written.source.as_str(), &written.json), (wanted, &value));
        assert_eq!(written.extra, extra);
    }
    for (value, why) in [
        (json!({ "id": 7, "kind": "pet" }), "`Pet::new` asks for `pet name`"),
        (json!({ "id": 7, "pet name": "Rex" }), "`Pet` always has `kind`"),
        (json!({ "id": 7, "pet name": "Rex", "kind": "pet", "more": 1 }), "`Pet` has no place for `more`"),
        (json!({ "id": "7", "pet name": "Rex", "kind": "pet" }), "\"7\" is no"),
    ] {
        let error = writer.value(&pet, &value).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn what_is_recorded_is_compared_as_a_whole() {
    let wanted = json!({ "a": 1, "b": [{ "c": "x" }] });
    assert!(write::is_same(&wanted, &json!({ "b": [{ "c": "x" }], "a": 1.0 })));
    for other in [
        json!({ "a": 1 }),
        json!({ "a": 1, "b": [{ "c": "x" }], "d": null }),
        json!({ "a": 1, "b": [{ "c": "x", "d": 1 }] }),
        json!({ "a": 1, "b": [] }),
        json!({ "a": "1", "b": [{ "c": "x" }] }),
    ] {
        assert!(!write::is_same(&wanted, &other), "{other}");
    }
}

#[test]
fn documents_of_a_list_that_are_not_there_are_replaced() {
    let sources =
        ["pets", "shop"].map(|name| Source { namespace: name.to_owned(), path: PathBuf::from(format!("{name}.json")) });
    let few = |list: &str| super::few(&sources, list).map(|few| few.len());
    assert_eq!(few("pets\nshop"), Ok(2));
    assert_eq!(few("pets"), Ok(1));
    assert_eq!(few("pets\nmuseum"), Ok(2));
    assert_eq!(few("museum"), Ok(1));
    assert!(few("pets\nbooks").is_err_and(|error| error.ends_with(": books")));
}
