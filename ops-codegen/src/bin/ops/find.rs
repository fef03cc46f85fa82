//! Operations by what a user calls them.

use ops_runtime::nearest::{nearest, question};
use ops_runtime::spec::OperationSpec;

use crate::failure::Failure;

/// How many operations are suggested if one is unknown.
const PROPOSED: usize = 5;

/// The operation with a name, an id, or a method and a path.
pub(crate) fn find<'s>(
    specs: &[&'s OperationSpec],
    wanted: &str,
    location: &str,
) -> Result<&'s OperationSpec, Failure> {
    let request = wanted.split_once(char::is_whitespace).map(|(method, path)| (method.to_uppercase(), path.trim()));
    let is_it = |spec: &OperationSpec| {
        let by_request = || {
            let (Some((method, path)), Some(http)) = (&request, spec.http()) else { return false };
            http.method == *method && http.path == *path
        };
        spec.id == wanted || spec.name() == wanted || by_request()
    };
    if let Some(spec) = specs.iter().find(|spec| is_it(spec)) {
        return Ok(spec);
    }
    let by_request = |spec: &&OperationSpec| spec.http().map(|http| format!("{} {}", http.method, http.path));
    let requests: Vec<String> = specs.iter().filter_map(by_request).collect();
    let is_id = |spec: &&OperationSpec| wanted.split_once('.').is_some_and(|(start, _)| start == spec.namespace());
    let meant = if wanted.contains('/') {
        nearest(wanted, requests.iter().map(String::as_str), PROPOSED)
    } else if specs.iter().any(is_id) {
        nearest(wanted, specs.iter().map(|spec| spec.id.as_ref()), PROPOSED)
    } else {
        nearest(wanted, specs.iter().map(|spec| spec.name()), PROPOSED)
    };
    let hint = match meant.as_slice() {
        [] => ": `ops inspect` shows all that there are".to_owned(),
        meant => question(meant),
    };
    Err(Failure::Usage(format!("`{location}` has no operation `{wanted}`{hint}")))
}
