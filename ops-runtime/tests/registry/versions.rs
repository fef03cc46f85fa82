//! Types and specs of several versions under one id.

use super::*;

/// Two versions of an API in one namespace: the same ids, other operations.
mod v1 {
    use super::*;

    operation!(GetPet: Value => Value, Call, OperationSpec::query("pets.get").with_version("1.0.0")
        .with_input(Schema::text(r#"{"type":"object","properties":{"id":{"type":"integer"}}}"#))
        .with_http(HttpBinding::new("GET", "/v1/pets/{id}")));
    operation!(Add: i64 => i64, Call, OperationSpec::query("pets.add"));
    operation!(Watch: Value => Value, Subscribe, OperationSpec::subscription("pets.watch")
        .with_http(HttpBinding::new("GET", "/v1/pets/events")));
}

mod v2 {
    use super::*;

    operation!(GetPet: Value => Value, Call, OperationSpec::query("pets.get").with_version("2.0.0")
        .with_input(Schema::text(r#"{"type":"object","properties":{"key":{"type":"integer"}}}"#))
        .with_http(HttpBinding::new("GET", "/v2/pets/{key}")));
    operation!(Add: String => String, Call, OperationSpec::query("pets.add")
        .with_input(Schema::text(r#"{"type":"string"}"#)));
    operation!(Watch: Value => Value, Subscribe, OperationSpec::subscription("pets.watch")
        .with_http(HttpBinding::new("GET", "/v2/pets/events")));
}

/// Answers with the path of the spec that it was told to run.
struct Path;

impl Endpoint for Path {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let path = json!(spec.http().map(|http| http.path.clone()));
        Box::pin(async { Ok(ResponseEnvelope::local(Payload::Value(path), "")) })
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let path = json!(spec.http().map(|http| http.path.clone()));
        let item = Ok(ResponseEnvelope::local(Payload::Value(path), ""));
        Box::pin(async { Ok(futures_util::stream::iter([item]).boxed()) })
    }
}

fn bound(specs: &[&'static OperationSpec]) -> Vec<Registration> {
    specs.iter().map(|spec| Registration::new(*spec, Handler::endpoint(Path))).collect()
}

#[tokio::test]
async fn a_type_of_another_version_is_not_run_by_the_spec_of_the_first() {
    let registry = Registry::new();
    registry.register_all(bound(&[v1::GetPet::SPEC, v1::Watch::SPEC])).unwrap();
    assert_eq!(registry.execute::<v1::GetPet>(json!({})).await.unwrap().data, "/v1/pets/{id}");
    // Twice: what was compared is remembered.
    for _ in 0..2 {
        let error = registry.execute::<v2::GetPet>(json!({})).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::OperationNotFound);
        let message = error.message();
        for part in ["1.0.0", "`GET /v1/pets/{id}`", "v2::GetPet`", "2.0.0", "`GET /v2/pets/{key}`", "the path"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let differences = ["the path", "the input schema at /properties/id"];
        assert_eq!(error.details()["differences"], json!(differences));
        assert_eq!(error.details()["operationId"], "pets.get");
    }
    let error = registry.subscribe::<v2::Watch>(json!({})).await.err().unwrap();
    assert!(error.message().contains("/v1/pets/events") && error.message().contains("/v2/pets/events"), "{error}");
    // Nor by any other caller of the registry; who may not call it at all is told nothing of it.
    let options = CallOptions::new().with_identity(Identity::new("ann"));
    assert!(registry.execute_with::<v2::GetPet>(json!({}), options).await.is_err());
    assert!(registry.scoped(Identity::new("ann")).execute::<v2::GetPet>(json!({})).await.is_err());
    let mut guarded = v1::GetPet::SPEC.clone();
    guarded.access = AccessControl::NONE.with_scopes(&["pets"]);
    registry.replace(Registration::new(guarded, Handler::endpoint(Path))).unwrap();
    let error = registry.scoped(Identity::new("ann")).execute::<v2::GetPet>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::AccessDenied);
    // Rules are not what an operation is.
    assert_eq!(registry.execute::<v1::GetPet>(json!({})).await.unwrap().data, "/v1/pets/{id}");
}

#[tokio::test]
async fn types_of_this_process_with_one_id_are_told_apart() {
    let registry = Registry::new();
    registry.register(Registration::call::<v1::Add, _, _>(|n, _| async move { Ok(Reply::Value(n + 1)) })).unwrap();
    let error = registry.execute::<v2::Add>("1".to_owned()).await.unwrap_err();
    assert!(error.message().contains("v1::Add`") && error.message().contains("v2::Add`"), "{error}");
    let error =
        registry.register(Registration::call::<v2::Add, _, _>(|n, _| async move { Ok(Reply::Value(n)) })).unwrap_err();
    assert!(error.to_string().contains("v1::Add`") && error.to_string().contains("v2::Add`"), "{error}");
    // Code for one version under the description of the other.
    let typed = || Handler::typed::<v1::GetPet, _, _>(|_, _| async { Ok(Reply::Value(json!(1))) });
    let error = registry.register(Registration::new(v2::GetPet::SPEC, typed())).unwrap_err();
    assert!(matches!(error, RegistryError::Differs { .. }), "{error}");
    registry.register_spec(v2::GetPet::SPEC).unwrap();
    assert!(matches!(registry.register_handler("pets.get", typed()), Err(RegistryError::Differs { .. })));
}

#[test]
fn two_versions_in_one_namespace_are_an_error_that_names_both() {
    let registry = Registry::new();
    registry.register_all(bound(&[v1::GetPet::SPEC])).unwrap();
    // All or nothing, and the first two of a list as those of two lists.
    let both = [v1::Watch::SPEC, v1::Add::SPEC, v2::Watch::SPEC];
    for error in [
        registry.register_all(bound(&[v1::Watch::SPEC, v2::GetPet::SPEC])).unwrap_err(),
        registry.register_spec(v2::GetPet::SPEC).unwrap_err(),
        registry.register_all(bound(&both)).unwrap_err(),
    ] {
        let RegistryError::Differs { registered, other, differences, .. } = &error else { panic!("{error}") };
        assert!(registered.contains("`GET /v1/pets/") && other.contains("`GET /v2/pets/"), "{error}");
        assert_eq!(differences[0], "the path");
    }
    assert_eq!(registry.list().len(), 1);
    // The same again, described otherwise, is there already.
    let mut again = v1::GetPet::SPEC.clone();
    (again.description, again.version) = ("Gets a pet.".into(), "1.0.1".into());
    let again = registry.register(Registration::new(again, Handler::endpoint(Path)));
    assert_eq!(again, Err(RegistryError::DuplicateClient { id: "pets.get".into() }));
    // Another server of the API, rather than a mistake.
    assert!(again.unwrap_err().to_string().contains("use a registry for each, or"));
    // What is meant to be another is put in its place.
    registry.replace(bound(&[v2::GetPet::SPEC]).remove(0)).unwrap();
}

#[tokio::test]
async fn a_spec_met_at_run_time_stands_for_a_type_that_means_the_same() {
    let met = |spec: &OperationSpec| -> OperationSpec {
        ops_runtime::record::from_value(&serde_json::to_value(spec).unwrap()).unwrap()
    };
    let registry = Registry::new();
    registry.register(Registration::new(met(v1::GetPet::SPEC), Handler::endpoint(Path))).unwrap();
    assert_eq!(registry.execute::<v1::GetPet>(json!({})).await.unwrap().data, "/v1/pets/{id}");
    assert!(registry.execute::<v2::GetPet>(json!({})).await.is_err());
    // Code that takes any JSON and says nothing of it runs no spec.
    let spec = OperationSpec::new(ops_runtime::spec::OperationKind::Mutation, "pets", "add").unwrap();
    registry.register(Registration::new(spec, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    assert_eq!(registry.execute::<v2::Add>("x".to_owned()).await.unwrap().data, "x");
}
