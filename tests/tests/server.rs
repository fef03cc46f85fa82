//! A document served by an implementation of its generated trait, and called by its generated client over loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use ops_runtime::adapter::ItemStream;
use ops_runtime::registry::{CancelToken, OutputPolicy};
use ops_runtime::serve::HttpServer;
use ops_runtime::{CallError, Context, ErrorCode, ErrorResponse, HttpClient, HttpConfig, Registry};
use serde_json::json;
use shelter::{
    Added, Arrivals, ArrivalsError, ArrivalsInput, ListPets, ListPetsError, ListPetsInput, Methods, Moved, NewPet, Pet,
    PetKind, Problem, PutPetInput, PutPetOutput, RemovePet, RemovePetError, RemovePetInput, Replaced, Server, ShowPet,
    ShowPetError, ShowPetInput, register_server,
};

ops_runtime::include_operations!(pub mod shelter = "shelter");
ops_runtime::include_operations!(pub mod kennel = "kennel");

/// What was asked for, in the order in which it came.
#[derive(Default, Clone)]
struct Shelter(Arc<Mutex<Vec<String>>>);

impl Shelter {
    fn note(&self, context: &Context, what: impl std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{what:?} {}", context.identity().is_some()));
    }
}

fn pet(id: i64, name: &str) -> Pet {
    Pet::new(id, name, PetKind::Dog)
}

fn problem(title: &str, id: i64) -> Problem {
    Problem { pet_id: Some(id), ..Problem::new(title) }
}

impl Server for Shelter {
    async fn list_pets(&self, context: Context, input: ListPetsInput) -> Result<Vec<Pet>, CallError> {
        self.note(&context, (input.limit, &input.names));
        match input.names.unwrap_or_default().first().map(String::as_str) {
            Some("closed") => Err(ListPetsError::Default(problem("closed", 0)).into()),
            Some("busy") => Err(ErrorResponse::new(503, json!({ "title": "busy" })).into()),
            // Not as the document says: a name has a letter at least, and there are two kinds.
            Some("bad") => Ok(vec![pet(1, ""), Pet::new(2, "Tom", PetKind::Other("fish".into()))]),
            Some("broken") => Err("secret words".into()),
            _ => Ok(vec![pet(1, "Rex"), Pet { vaccinated: true, ..pet(2, "Tom") }]),
        }
    }

    async fn show_pet(&self, context: Context, input: ShowPetInput) -> Result<Pet, CallError> {
        self.note(&context, input.pet_id);
        match input.pet_id {
            7 => Ok(pet(7, "Rex")),
            8 => Err(ShowPetError::Unauthorized)?,
            9 => Err(ErrorResponse::new(418, "short and stout").into()),
            10 => Err(CallError::new("SOLD", "it has a home").with_details(json!({ "by": "ann" }))),
            id => Err(ShowPetError::NotFound(problem("no such pet", id)).into()),
        }
    }

    async fn put_pet(&self, context: Context, input: PutPetInput) -> Result<Option<PutPetOutput>, CallError> {
        self.note(&context, &input.body.name);
        Ok(match input.pet_id {
            1 => Some(PutPetOutput::Ok_(Replaced::new(1))),
            2 => {
                context.set_response_header("Location", "/pets/2");
                Some(PutPetOutput::Created(Added::new(2)))
            }
            4 => Some(PutPetOutput::Success(Moved::new(4))),
            _ => None,
        })
    }

    async fn remove_pet(&self, _: Context, input: RemovePetInput) -> Result<(), CallError> {
        match input.pet_id {
            1 => Ok(()),
            id => Err(RemovePetError::ClientError(problem("it is loved", id)).into()),
        }
    }

    async fn arrivals(&self, _: Context, input: ArrivalsInput) -> Result<ItemStream<Pet>, CallError> {
        if input.count == 0 {
            return Err(ArrivalsError::Conflict(problem("nobody comes", 0)).into());
        }
        let pets = (1..=input.count).map(|id| match id {
            2 => Err(CallError::new("LOST", "this one ran away")),
            id => Ok(pet(id, "Rex")),
        });
        Ok(stream::iter(pets).boxed())
    }
}

/// A server of a registry, which stops when it is dropped.
struct Served {
    url: String,
    cancel: CancelToken,
}

impl Served {
    async fn start(registry: Registry) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (url, cancel) = (format!("http://{}", listener.local_addr().unwrap()), CancelToken::new());
        tokio::spawn(HttpServer::new(registry).with_cancel(cancel.clone()).serve_listener(listener));
        Self { url, cancel }
    }

    fn client(&self) -> HttpClient {
        HttpClient::new(HttpConfig::new().with_base_url(&*self.url)).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn registry(policy: OutputPolicy, shelter: Shelter) -> Registry {
    let registry = Registry::builder().with_policy(policy).build();
    register_server(&registry, shelter).unwrap();
    registry
}

#[tokio::test]
async fn results_are_those_of_the_methods() {
    let shelter = Shelter::default();
    let served = Served::start(registry(OutputPolicy::Strict, shelter.clone())).await;
    let client = served.client();
    let found = client.show_pet(7).await.unwrap();
    assert_eq!((found.data, found.meta.as_http().unwrap().status_code), (pet(7, "Rex"), 200));
    let input = ListPetsInput { limit: Some(5), names: Some(vec!["a".into(), "b".into()]) };
    let pets = client.list_pets(input).await.unwrap().data;
    assert_eq!((pets.len(), pets[0].vaccinated, pets[1].vaccinated), (2, false, true));
    client.list_pets(()).await.unwrap();
    client.remove_pet(1).await.unwrap();
    // A default of a request is for the method to apply.
    let noted = shelter.0.lock().unwrap().clone();
    assert_eq!(noted, ["7 false", r#"(Some(5), Some(["a", "b"])) false"#, "(None, None) false"]);
}

#[tokio::test]
async fn the_variant_of_the_output_is_the_status() {
    for policy in [OutputPolicy::Repair, OutputPolicy::Strict, OutputPolicy::Cast] {
        let served = Served::start(registry(policy, Shelter::default())).await;
        let client = served.client();
        let cases = [
            (1, 200, Some(PutPetOutput::Ok_(Replaced::new(1)))),
            (2, 201, Some(PutPetOutput::Created(Added::new(2)))),
            (3, 202, None),
            // The first status of the range that no other response describes.
            (4, 203, Some(PutPetOutput::Success(Moved::new(4)))),
        ];
        for (id, status, output) in cases {
            let answer = client.put_pet((id, NewPet::new("Rex"))).await.unwrap();
            assert_eq!(answer.header("location"), (status == 201).then_some("/pets/2"), "{policy:?}");
            assert_eq!((answer.meta.as_http().unwrap().status_code, answer.data), (status, output), "{policy:?}");
        }
    }
}

#[tokio::test]
async fn declared_errors_have_their_status_and_body() {
    let served = Served::start(registry(OutputPolicy::Repair, Shelter::default())).await;
    let client = served.client();
    let error = client.show_pet(1).await.unwrap_err();
    assert_eq!(error.status(), Some(404));
    assert_eq!(error.declared::<ShowPet>(), Some(ShowPetError::NotFound(problem("no such pet", 1))));
    assert_eq!(error.details()["contentType"], "application/problem+json");
    assert_eq!(error.details()["body"], json!({ "title": "no such pet", "petId": 1 }));
    let error = client.show_pet(8).await.unwrap_err();
    assert_eq!((error.status(), error.declared::<ShowPet>()), (Some(401), Some(ShowPetError::Unauthorized)));
    assert!(error.details()["body"].is_null(), "{error:?}");
    // A status that nobody describes is sent as the method says it.
    let error = client.show_pet(9).await.unwrap_err();
    assert_eq!((error.status(), &error.details()["body"]), (Some(418), &json!("short and stout")));
    // A range, `default`, and another status that `default` describes.
    let error = client.remove_pet(2).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert_eq!(error.declared::<RemovePet>(), Some(RemovePetError::ClientError(problem("it is loved", 2))));
    let names = |name: &str| ListPetsInput { names: Some(vec![name.into()]), ..Default::default() };
    let error = client.list_pets(names("closed")).await.unwrap_err();
    assert_eq!(
        (error.status(), error.declared::<ListPets>()),
        (Some(500), Some(ListPetsError::Default(problem("closed", 0))))
    );
    let error = client.list_pets(names("busy")).await.unwrap_err();
    assert_eq!(
        (error.status(), error.declared::<ListPets>()),
        (Some(503), Some(ListPetsError::Default(Problem::new("busy"))))
    );
    // An error with a code of its own, and a failure, whose words stay in the log.
    let error = client.show_pet(10).await.unwrap_err();
    assert_eq!((error.status(), &error.details()["body"]["code"]), (Some(400), &json!("SOLD")));
    assert_eq!(error.details()["body"]["details"], json!({ "by": "ann" }));
    let error = client.list_pets(names("broken")).await.unwrap_err();
    assert_eq!(error.status(), Some(500));
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_result_that_is_not_as_described_is_not_sent() {
    let names = |name: &str| ListPetsInput { names: Some(vec![name.into()]), ..Default::default() };
    for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
        let served = Served::start(registry(policy, Shelter::default())).await;
        let error = served.client().list_pets(names("bad")).await.unwrap_err();
        assert_eq!((error.status(), &error.details()["body"]["code"]), (Some(500), &json!("VALIDATION_ERROR")));
    }
}

#[tokio::test]
async fn an_input_that_is_not_as_described_reaches_no_method() {
    let shelter = Shelter::default();
    let served = Served::start(registry(OutputPolicy::Repair, shelter.clone())).await;
    // Two faults at once.
    let error = served.client().list_pets(ListPetsInput { limit: Some(0), names: None }).await;
    assert_eq!(error.unwrap_err().status(), Some(422));
    let text = reply(&served.url, "GET /pets?limit=101&names=a HTTP/1.1\r\n").await;
    assert!(text.starts_with("HTTP/1.1 422 ") && text.contains(r#""pointer":"/limit""#), "{text}");
    let text = reply(&served.url, "GET /pets/x HTTP/1.1\r\n").await;
    assert!(text.starts_with("HTTP/1.1 422 ") && text.contains(r#""pointer":"/petId""#), "{text}");
    assert!(shelter.0.lock().unwrap().is_empty());
}

async fn reply(url: &str, head: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    socket.write_all(format!("{head}Host: localhost\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_subscription_gives_items_and_errors() {
    let served = Served::start(registry(OutputPolicy::Repair, Shelter::default())).await;
    let client = served.client();
    let items: Vec<_> = client.arrivals(3).await.unwrap().collect().await;
    let ids: Vec<Option<i64>> = items.iter().map(|item| item.as_ref().ok().map(|item| item.data.id)).collect();
    assert_eq!(ids, [Some(1), None, Some(3)]);
    let error = client.arrivals(0).await.err().unwrap();
    assert_eq!(error.declared::<Arrivals>(), Some(ArrivalsError::Conflict(problem("nobody comes", 0))));
}

#[tokio::test]
async fn errors_are_typed_without_a_server_between() {
    let registry = registry(OutputPolicy::Repair, Shelter::default());
    let error = registry.show_pet(1).await.unwrap_err();
    assert_eq!(error.declared::<ShowPet>(), Some(ShowPetError::NotFound(problem("no such pet", 1))));
    assert_eq!(
        registry.put_pet((2, NewPet::new("Rex"))).await.unwrap().data,
        Some(PutPetOutput::Created(Added::new(2)))
    );
    let error = register_server(&registry, Shelter::default()).unwrap_err();
    assert!(error.to_string().contains("registered already"), "{error}");
}

/// A server that knows one thing.
struct Kennel;

impl kennel::Server for Kennel {
    async fn show_pet(&self, _: Context, input: kennel::ShowPetInput) -> Result<kennel::Pet, CallError> {
        Ok(kennel::Pet::new(input.pet_id, "Rex", kennel::PetKind::Cat))
    }
}

#[tokio::test]
async fn what_a_partial_server_leaves_out_is_not_implemented() {
    let registry = Registry::new();
    kennel::register_server(&registry, Kennel).unwrap();
    let served = Served::start(registry.clone()).await;
    let client = served.client();
    assert_eq!(client.execute::<kennel::ShowPet>(3).await.unwrap().data.id, 3);
    let error = client.execute::<kennel::ListPets>(()).await.unwrap_err();
    let body = &error.details()["body"];
    assert_eq!((error.status(), &body["code"]), (Some(501), &json!("NOT_IMPLEMENTED")));
    assert_eq!(body["detail"], "`kennel.listPets` is not implemented");
    assert_eq!(client.subscribe::<kennel::Arrivals>(1).await.err().unwrap().status(), Some(501));
    // In one process, it is the error itself.
    let error = registry.execute::<kennel::ListPets>(()).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Domain("NOT_IMPLEMENTED".into()));
}
