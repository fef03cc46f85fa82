//! The example `github`, built from its excerpt, against a server that answers as GitHub does.

use std::process::{Command, Output};

use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use ops_tests::program::built;
use serde_json::{Value, json};

/// What the server says, where it was reached.
async fn start() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    let router = Router::new()
        .route("/user", get(user))
        .route("/repos/{owner}/{repo}", get(repository))
        .route("/repos/ann/zoo/issues", get(move |query: RawQuery| issues(own, query)))
        .route("/repos/ann/zoo/issues/{number}/comments", post(comment));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

type Answer = (StatusCode, Json<Value>);

async fn user(headers: HeaderMap) -> Answer {
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer t0k3n") {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "message": "Bad credentials" })));
    }
    (StatusCode::OK, Json(json!({ "user_view_type": "private", "login": "ann", "total_private_repos": 3 })))
}

async fn repository(Path((owner, repo)): Path<(String, String)>) -> Answer {
    if repo == "lost" {
        return (StatusCode::NOT_FOUND, Json(json!({ "message": "Not Found" })));
    }
    let name = format!("{owner}/{repo}");
    (StatusCode::OK, Json(json!({ "full_name": name, "description": null, "stargazers_count": 7, "size": 1 })))
}

async fn issues(own: String, RawQuery(query): RawQuery) -> impl IntoResponse {
    let query = query.unwrap_or_default();
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("page=")).unwrap_or("1");
    let page: i64 = asked.parse().unwrap();
    assert!(query.contains("per_page=20"), "{query}");
    let link = format!("<{own}/repos/ann/zoo/issues?per_page=20&page={}>; rel=\"next\"", page + 1);
    let headers = (page < 2).then_some([(header::LINK, link)]);
    let labels = json!(["text", { "name": "object" }]);
    (headers, Json(json!([{ "number": page, "title": format!("Issue {page}"), "labels": labels }])))
}

async fn comment(Path(number): Path<i64>, Json(body): Json<Value>) -> Answer {
    if body["body"] == "" {
        let errors = json!([{ "field": "body", "code": "missing" }]);
        let problem = json!({ "message": "Validation Failed", "documentation_url": "none", "errors": errors });
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(problem));
    }
    (StatusCode::CREATED, Json(json!({ "html_url": format!("https://github.test/{number}") })))
}

fn run(url: &str, token: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(built("github"));
    command.args(["--base-url", url]).args(arguments);
    command.env_remove("OPS_DOCUMENT").env_remove("GITHUB_TOKEN");
    if let Some(token) = token {
        command.env("GITHUB_TOKEN", token);
    }
    command.output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reads_pages_and_typed_errors() {
    let url = start().await;
    let lines = async |token, arguments: &'static [&'static str]| {
        let url = url.clone();
        let output = tokio::task::spawn_blocking(move || run(&url, token, arguments)).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = [
        "I am ann, with 3 private repositories",
        "ann/zoo: (no description)",
        "7 stars",
        "#1 Issue 1 [text, object]",
        "#2 Issue 2 [text, object]",
        "commented: https://github.test/2",
    ];
    assert_eq!(lines(Some("t0k3n"), &["--comment", "2", "Me too", "ann", "zoo"]).await, all);
    assert_eq!(lines(None, &["ann", "zoo"]).await, all[1..5]);
    assert_eq!(lines(None, &["ann", "lost"]).await, ["no repository: 404, Not Found"]);
    let refused = lines(Some("wrong"), &["--comment", "2", "", "ann", "zoo"]).await;
    assert_eq!(refused[0], "I am nobody: 401, Bad credentials");
    assert_eq!(refused[5], "no comment: 422, Validation Failed (body missing)");
}
