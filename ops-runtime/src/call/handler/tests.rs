//! What a handler announces.

use super::*;
use crate::call::InProcess;
use crate::{HttpBinding, Registration};

/// Otherwise, one transport would drop the specs that it leaves out, and another would make them again for each announcement.
#[test]
fn each_transport_keeps_the_specs_that_it_announces() {
    let [near, far] = [InProcess::new(), InProcess::new()];
    let bound = ["a.one", "a.two"].map(|id| OperationSpec::query(id).with_http(HttpBinding::new("GET", "/")));
    let registrations: Vec<Registration> = near.remote().bind(bound).unwrap();
    let registry = Registry::new();
    registry.register_all(registrations).unwrap();
    let handler = CallHandler::new(registry);
    let over = |transport: &InProcess| handler.clone().over(transport.remote().transport().unwrap());
    let (over_near, over_far) = (over(&near), over(&far));
    let before = over_far.announced();
    assert_eq!(before.iter().map(|spec| &*spec.id).collect::<Vec<_>>(), ["a.one", "a.two"]);
    assert!(over_near.announced().is_empty());
    assert!(before.iter().zip(&over_far.announced()).all(|(before, now)| same(before, now)));
}
