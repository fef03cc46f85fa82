//! Finds an operation by the name that the user typed.

use ops_runtime::nearest::{nearest, question};
use ops_runtime::spec::OperationSpec;

use crate::failure::Failure;

/// How many operations are suggested if one is unknown.
const PROPOSED: usize = 5;

/// The operation with a name, an id, or a method and a path; without a location, it is one of the server.
pub(crate) fn find<'s>(
    specs: &[&'s OperationSpec],
    wanted: &str,
    location: Option<&str>,
) -> Result<&'s OperationSpec, Failure> {
    let request = wanted.split_once(char::is_whitespace).map(|(method, path)| (method.to_uppercase(), path.trim()));
    let is_it = |spec: &OperationSpec| {
        let by_request = || {
            let (Some((method, path)), Some(http)) = (&request, spec.http()) else { return false };
            http.method == *method && http.path == *path
        };
        spec.id == wanted || spec.name() == wanted || by_request()
    };
    let found: Vec<&&OperationSpec> = specs.iter().filter(|spec| is_it(spec)).collect();
    match found.as_slice() {
        [] => {}
        [one] => return Ok(one),
        several => {
            if let Some(spec) = several.iter().find(|spec| spec.id == wanted) {
                return Ok(spec);
            }
            let ids: Vec<&str> = several.iter().take(PROPOSED).map(|spec| spec.id.as_ref()).collect();
            return Err(Failure::Usage(format!("several operations are called `{wanted}`{}", question(&ids))));
        }
    }
    let by_request = |spec: &&OperationSpec| spec.http().map(|http| format!("{} {}", http.method, http.path));
    let requests: Vec<String> = specs.iter().filter_map(by_request).collect();
    let is_id = |spec: &&OperationSpec| wanted.split_once('.').is_some_and(|(start, _)| start == spec.namespace());
    let is_method = |spec: &&OperationSpec| spec.http().is_some_and(|http| http.method.eq_ignore_ascii_case(wanted));
    let of_path = |request: &&str| request.split_once(' ').is_some_and(|(_, path)| path == wanted);
    let with_path: Vec<&str> = requests.iter().map(String::as_str).filter(of_path).take(PROPOSED).collect();
    let meant = if !with_path.is_empty() {
        with_path
    } else if wanted.contains('/') {
        nearest(wanted, requests.iter().map(String::as_str), PROPOSED)
    } else if specs.iter().any(is_id) {
        nearest(wanted, specs.iter().map(|spec| spec.id.as_ref()), PROPOSED)
    } else {
        nearest(wanted, specs.iter().map(|spec| spec.name()), PROPOSED)
    };
    let hint = match meant.as_slice() {
        _ if specs.iter().any(is_method) => ": write a request as one word, in quotes: 'METHOD /path'".to_owned(),
        [] => ": `ops inspect` shows all that there are".to_owned(),
        meant => question(meant),
    };
    let location = location.map_or_else(|| "the server".to_owned(), |location| format!("`{location}`"));
    Err(Failure::Usage(format!("{location} has no operation `{wanted}`{hint}")))
}
