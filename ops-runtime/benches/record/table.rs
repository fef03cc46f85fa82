//! The types as a generator prints them.

pub struct Account {
    pub id: u64,
    pub login: String,
    pub node_id: String,
    pub avatar_url: String,
    pub html_url: String,
    pub type_: AccountType,
    pub site_admin: bool,
    pub name: Option<String>,
    pub company: Option<String>,
    pub blog: Option<String>,
    pub location: Option<String>,
    pub email: Option<String>,
    pub hireable: Option<bool>,
    pub bio: Option<String>,
    pub public_repos: i64,
    pub followers: i64,
    pub following: i64,
    pub created_at: String,
    pub updated_at: String,
    pub plan: Option<Plan>,
}

pub struct Plan {
    pub name: String,
    pub space: i64,
    pub private_repos: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountType {
    User,
    Organization,
    Bot,
    Other(String),
}

pub struct Reading {
    pub id: u32,
    pub sensor: String,
    pub value: f64,
    pub valid: Option<bool>,
}

pub struct Order {
    pub id: i64,
    pub customer: Customer,
    pub lines: Vec<Line>,
    pub status: Status,
    pub note: Option<String>,
    pub total: f64,
    pub currency: Currency,
    pub tags: Option<Vec<String>>,
}

pub struct Customer {
    pub id: i64,
    pub first_name: String,
    pub last_name: String,
    pub email: Option<String>,
    pub address: Option<Address>,
}

pub struct Address {
    pub street: String,
    pub city: String,
    pub zip: String,
    pub country: Option<String>,
}

pub struct Line {
    pub sku: String,
    pub quantity: u32,
    pub price: f64,
    pub discount: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    New,
    Paid,
    Shipped,
    Returned,
    Cancelled,
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Currency {
    Eur,
    Usd,
    Chf,
    Other(String),
}

pub struct Push {
    pub id: i64,
    pub actor: String,
    pub commits: Vec<Commit>,
}

pub struct Commit {
    pub sha: String,
    pub message: String,
}

pub struct Issue {
    pub id: i64,
    pub actor: String,
    pub title: String,
    pub body: Option<String>,
    pub labels: Vec<String>,
}

pub struct Star {
    pub id: i64,
    pub actor: String,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Push(Push),
    Issue(Issue),
    Star(Star),
    Other(serde_json::Value),
}

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Account {
        const NAME: &'static str = "Account";
        const FIELDS: &'static [&'static str] = &[
            "id",
            "login",
            "nodeId",
            "avatarUrl",
            "htmlUrl",
            "type",
            "siteAdmin",
            "name",
            "company",
            "blog",
            "location",
            "email",
            "hireable",
            "bio",
            "publicRepos",
            "followers",
            "following",
            "createdAt",
            "updatedAt",
            "plan",
        ];
        type Slots = (
            (
                Required<u64>,
                Required<String>,
                Required<String>,
                Required<String>,
                Required<String>,
                Required<super::AccountType>,
                Required<bool>,
                Optional<String>,
            ),
            (
                Optional<String>,
                Optional<String>,
                Optional<String>,
                Optional<String>,
                Optional<bool>,
                Optional<String>,
                Required<i64>,
                Required<i64>,
            ),
            (Defaulted<i64>, Required<String>, Required<String>, Optional<super::Plan>),
        );
        fn make(
            (
                (id, login, node_id, avatar_url, html_url, type_, site_admin, name),
                (company, blog, location, email, hireable, bio, public_repos, followers),
                (following, created_at, updated_at, plan),
            ): Values<Self>,
        ) -> Self {
            Self {
                id,
                login,
                node_id,
                avatar_url,
                html_url,
                type_,
                site_admin,
                name,
                company,
                blog,
                location,
                email,
                hireable,
                bio,
                public_repos,
                followers,
                following: following.unwrap_or_default(),
                created_at,
                updated_at,
                plan,
            }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (
                (
                    &self.id,
                    &self.login,
                    &self.node_id,
                    &self.avatar_url,
                    &self.html_url,
                    &self.type_,
                    &self.site_admin,
                    &self.name,
                ),
                (
                    &self.company,
                    &self.blog,
                    &self.location,
                    &self.email,
                    &self.hireable,
                    &self.bio,
                    &self.public_repos,
                    &self.followers,
                ),
                (&self.following, &self.created_at, &self.updated_at, &self.plan),
            )
        }
    }
    ops_runtime::__generated::table!(super::Account);

    impl Record for super::Plan {
        const NAME: &'static str = "Plan";
        const FIELDS: &'static [&'static str] = &["name", "space", "privateRepos"];
        type Slots = (Required<String>, Required<i64>, Required<i64>);
        fn make((name, space, private_repos): Values<Self>) -> Self {
            Self { name, space, private_repos }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.name, &self.space, &self.private_repos)
        }
    }
    ops_runtime::__generated::table!(super::Plan);

    ops_runtime::__generated::names!(super::AccountType { "User" => User, "Organization" => Organization, "Bot" => Bot, _ => Other });

    impl Record for super::Reading {
        const NAME: &'static str = "Reading";
        const FIELDS: &'static [&'static str] = &["id", "sensor", "value", "valid"];
        type Slots = (Required<u32>, Required<String>, Required<f64>, Optional<bool>);
        fn make((id, sensor, value, valid): Values<Self>) -> Self {
            Self { id, sensor, value, valid }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.sensor, &self.value, &self.valid)
        }
    }
    ops_runtime::__generated::table!(super::Reading);

    impl Record for super::Order {
        const NAME: &'static str = "Order";
        const FIELDS: &'static [&'static str] =
            &["id", "customer", "lines", "status", "note", "total", "currency", "tags"];
        type Slots = (
            Required<i64>,
            Required<super::Customer>,
            Required<Vec<super::Line>>,
            Required<super::Status>,
            Optional<String>,
            Required<f64>,
            Defaulted<super::Currency>,
            Optional<Vec<String>>,
        );
        fn make((id, customer, lines, status, note, total, currency, tags): Values<Self>) -> Self {
            Self { id, customer, lines, status, note, total, currency: currency.unwrap_or(super::Currency::Eur), tags }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.customer, &self.lines, &self.status, &self.note, &self.total, &self.currency, &self.tags)
        }
    }
    ops_runtime::__generated::table!(super::Order);

    impl Record for super::Customer {
        const NAME: &'static str = "Customer";
        const FIELDS: &'static [&'static str] = &["id", "firstName", "lastName", "email", "address"];
        type Slots = (Required<i64>, Required<String>, Required<String>, Optional<String>, Optional<super::Address>);
        fn make((id, first_name, last_name, email, address): Values<Self>) -> Self {
            Self { id, first_name, last_name, email, address }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.first_name, &self.last_name, &self.email, &self.address)
        }
    }
    ops_runtime::__generated::table!(super::Customer);

    impl Record for super::Address {
        const NAME: &'static str = "Address";
        const FIELDS: &'static [&'static str] = &["street", "city", "zip", "country"];
        type Slots = (Required<String>, Required<String>, Required<String>, Optional<String>);
        fn make((street, city, zip, country): Values<Self>) -> Self {
            Self { street, city, zip, country }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.street, &self.city, &self.zip, &self.country)
        }
    }
    ops_runtime::__generated::table!(super::Address);

    impl Record for super::Line {
        const NAME: &'static str = "Line";
        const FIELDS: &'static [&'static str] = &["sku", "quantity", "price", "discount"];
        type Slots = (Required<String>, Required<u32>, Required<f64>, Optional<f64>);
        fn make((sku, quantity, price, discount): Values<Self>) -> Self {
            Self { sku, quantity, price, discount }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.sku, &self.quantity, &self.price, &self.discount)
        }
    }
    ops_runtime::__generated::table!(super::Line);

    ops_runtime::__generated::names!(super::Status { "new" => New, "paid" => Paid, "shipped" => Shipped, "returned" => Returned, "cancelled" => Cancelled, _ => Other });

    ops_runtime::__generated::names!(super::Currency { "eur" => Eur, "usd" => Usd, "chf" => Chf, _ => Other });

    impl Record for super::Push {
        const NAME: &'static str = "Push";
        const FIELDS: &'static [&'static str] = &["id", "actor", "commits"];
        type Slots = (Required<i64>, Required<String>, Required<Vec<super::Commit>>);
        fn make((id, actor, commits): Values<Self>) -> Self {
            Self { id, actor, commits }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.actor, &self.commits)
        }
    }
    ops_runtime::__generated::table!(super::Push);

    impl Record for super::Commit {
        const NAME: &'static str = "Commit";
        const FIELDS: &'static [&'static str] = &["sha", "message"];
        type Slots = (Required<String>, Required<String>);
        fn make((sha, message): Values<Self>) -> Self {
            Self { sha, message }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.sha, &self.message)
        }
    }
    ops_runtime::__generated::table!(super::Commit);

    impl Record for super::Issue {
        const NAME: &'static str = "Issue";
        const FIELDS: &'static [&'static str] = &["id", "actor", "title", "body", "labels"];
        type Slots = (Required<i64>, Required<String>, Required<String>, Optional<String>, Required<Vec<String>>);
        fn make((id, actor, title, body, labels): Values<Self>) -> Self {
            Self { id, actor, title, body, labels }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.actor, &self.title, &self.body, &self.labels)
        }
    }
    ops_runtime::__generated::table!(super::Issue);

    impl Record for super::Star {
        const NAME: &'static str = "Star";
        const FIELDS: &'static [&'static str] = &["id", "actor", "at"];
        type Slots = (Required<i64>, Required<String>, Required<String>);
        fn make((id, actor, at): Values<Self>) -> Self {
            Self { id, actor, at }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.actor, &self.at)
        }
    }
    ops_runtime::__generated::table!(super::Star);

    ops_runtime::__generated::tagged!(super::Event["kind"] { "push" => Push, "issue" => Issue, "star" => Star, _ => Other });
}
