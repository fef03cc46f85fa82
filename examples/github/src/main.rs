//! A few calls of a large API: `github [--base-url URL] [--comment ISSUE TEXT] [OWNER REPO]`.
//!
//! `GITHUB_TOKEN` is used if it is set.

use std::error::Error;

use futures_util::StreamExt;
use github::{IssuesListForRepoInput, Methods};
use ops_runtime::http::Auth;
use ops_runtime::http::Retry;
use ops_runtime::http::pages::link_parameter;
use ops_runtime::{CallError, HttpClient, HttpConfig, ResponseEnvelope};

/// The operations that `build.rs` chose.
pub mod github {
    ops_runtime::include_operations!("github");
}

/// Issues to a page, and how many pages are shown.
const PER_PAGE: i64 = 20;
const SHOWN: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    // GitHub's document names no security scheme, so the token goes where it says itself: `Authorization: Bearer`.
    let mut config = HttpConfig::new().with_header("X-GitHub-Api-Version", "2022-11-28").with_retries(Retry::new());
    if let Some(url) = options.base_url {
        config = config.with_base_url(url);
    }
    let token = std::env::var("GITHUB_TOKEN").ok();
    if let Some(token) = &token {
        config = config.with_auth(Auth::bearer(token.as_str()));
    }
    let client = HttpClient::new(config)?;
    let (owner, repo) = (options.owner, options.repo);

    if token.is_some() {
        let me = client.users_get_authenticated().await;
        match me.map(ResponseEnvelope::into_data) {
            Ok(github::UsersGetAuthenticatedOutput::Private(user)) => {
                println!("I am {}, with {} private repositories", user.login, user.total_private_repos);
            }
            Ok(github::UsersGetAuthenticatedOutput::Public(user)) => println!("I am {}", user.login),
            Ok(github::UsersGetAuthenticatedOutput::Other(user)) => println!("I am {}", user["login"]),
            Err(error) => println!("I am nobody: {}", explain(&error)),
        }
    }

    match client.repos_get((owner.as_str(), repo.as_str())).await {
        Ok(found) => {
            let repository = found.data;
            println!("{}: {}", repository.full_name, repository.description.as_deref().unwrap_or("(no description)"));
            println!("{} stars", repository.stargazers_count);
        }
        Err(error) => {
            println!("no repository: {}", explain(&error));
            return Ok(());
        }
    }

    list_issues(&client, &owner, &repo).await?;

    if let Some((issue_number, body)) = options.comment {
        let body = github::IssuesCreateCommentInputBody { body };
        let input = github::IssuesCreateCommentInput { owner, repo, issue_number, body };
        match client.issues_create_comment(input).await {
            Ok(comment) => println!("commented: {}", comment.data.html_url),
            Err(error) => println!("no comment: {}", explain(&error)),
        }
    }
    Ok(())
}

/// Shows the first pages of a repository's open issues; each is asked for when it is wanted.
async fn list_issues(client: &HttpClient, owner: &str, repo: &str) -> Result<(), Box<dyn Error>> {
    let first = IssuesListForRepoInput { per_page: Some(PER_PAGE), ..IssuesListForRepoInput::new(owner, repo) };
    let pages = client.issues_list_for_repo(first).pages(|input, page| {
        input.page = link_parameter(page, "page").and_then(|page| page.parse().ok());
        input.page.is_some()
    });
    let mut pages = pages.take(SHOWN);
    while let Some(page) = pages.next().await {
        for issue in page?.data {
            let labels: Vec<&str> = issue.labels.iter().filter_map(label).collect();
            println!("#{} {} [{}]", issue.number, issue.title, labels.join(", "));
        }
    }
    Ok(())
}

fn label(label: &github::IssueLabelsItem) -> Option<&str> {
    match label {
        github::IssueLabelsItem::String(name) => Some(name),
        github::IssueLabelsItem::WithId(label) => label.name.as_deref(),
    }
}

/// What the server said, in the type that the document gives to the errors of this status.
fn explain(error: &CallError) -> String {
    let Some(status) = error.status() else { return error.to_string() };
    let said = match status {
        422 => error.body().ok().map(|problem: github::ValidationError| {
            let fields = problem.errors.unwrap_or_default().into_iter();
            let fields: Vec<_> = fields.map(|e| format!("{} {}", e.field.unwrap_or_default(), e.code)).collect();
            format!("{} ({})", problem.message, fields.join(", "))
        }),
        _ => error.body().ok().and_then(|problem: github::BasicError| problem.message),
    };
    format!("{status}, {}", said.as_deref().unwrap_or("without a reason"))
}

struct Options {
    base_url: Option<String>,
    comment: Option<(i64, String)>,
    owner: String,
    repo: String,
}

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let (mut base_url, mut comment, mut names) = (None, None, Vec::new());
        let mut arguments = std::env::args().skip(1);
        let missing = || "usage: github [--base-url URL] [--comment ISSUE TEXT] [OWNER REPO]";
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--base-url" => base_url = Some(arguments.next().ok_or_else(missing)?),
                "--comment" => {
                    let issue = arguments.next().ok_or_else(missing)?.parse()?;
                    comment = Some((issue, arguments.next().ok_or_else(missing)?));
                }
                name => names.push(name.to_owned()),
            }
        }
        let [owner, repo] = match names.len() {
            0 => ["rust-lang".to_owned(), "rust".to_owned()],
            _ => names.try_into().map_err(|_| missing())?,
        };
        Ok(Self { base_url, comment, owner, repo })
    }
}
