//! The types as a generator prints them.

#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub id: u32,
    pub sensor: String,
    pub value: f64,
    pub valid: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
pub struct Customer {
    pub id: i64,
    pub first_name: String,
    pub last_name: String,
    pub email: Option<String>,
    pub address: Option<Address>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub street: String,
    pub city: String,
    pub zip: String,
    pub country: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
pub struct Push {
    pub id: i64,
    pub actor: String,
    pub commits: Vec<Commit>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    pub sha: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Issue {
    pub id: i64,
    pub actor: String,
    pub title: String,
    pub body: Option<String>,
    pub labels: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
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
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "login" => 1,
                "nodeId" => 2,
                "avatarUrl" => 3,
                "htmlUrl" => 4,
                "type" => 5,
                "siteAdmin" => 6,
                "name" => 7,
                "company" => 8,
                "blog" => 9,
                "location" => 10,
                "email" => 11,
                "hireable" => 12,
                "bio" => 13,
                "publicRepos" => 14,
                "followers" => 15,
                "following" => 16,
                "createdAt" => 17,
                "updatedAt" => 18,
                "plan" => 19,
                _ => 20,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (
                None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
                None, None, None,
            );
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    4 => m.put(&mut s.4),
                    5 => m.put(&mut s.5),
                    6 => m.put(&mut s.6),
                    7 => m.put(&mut s.7),
                    8 => m.put(&mut s.8),
                    9 => m.put(&mut s.9),
                    10 => m.put(&mut s.10),
                    11 => m.put(&mut s.11),
                    12 => m.put(&mut s.12),
                    13 => m.put(&mut s.13),
                    14 => m.put(&mut s.14),
                    15 => m.put(&mut s.15),
                    16 => m.put(&mut s.16),
                    17 => m.put(&mut s.17),
                    18 => m.put(&mut s.18),
                    19 => m.put(&mut s.19),
                    _ => m.skip(),
                }?
            }
            match s {
                (
                    Some(id),
                    Some(login),
                    Some(node_id),
                    Some(avatar_url),
                    Some(html_url),
                    Some(type_),
                    Some(site_admin),
                    name,
                    company,
                    blog,
                    location,
                    email,
                    hireable,
                    bio,
                    Some(public_repos),
                    Some(followers),
                    following,
                    Some(created_at),
                    Some(updated_at),
                    plan,
                ) => Ok(Self {
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
                }),
                s => Err(m.missing(&[
                    (0, s.0.is_none()),
                    (1, s.1.is_none()),
                    (2, s.2.is_none()),
                    (3, s.3.is_none()),
                    (4, s.4.is_none()),
                    (5, s.5.is_none()),
                    (6, s.6.is_none()),
                    (14, s.14.is_none()),
                    (15, s.15.is_none()),
                    (17, s.17.is_none()),
                    (18, s.18.is_none()),
                ])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "login", &self.login)?;
            put(m, "nodeId", &self.node_id)?;
            put(m, "avatarUrl", &self.avatar_url)?;
            put(m, "htmlUrl", &self.html_url)?;
            put(m, "type", &self.type_)?;
            put(m, "siteAdmin", &self.site_admin)?;
            put_some(m, "name", &self.name)?;
            put_some(m, "company", &self.company)?;
            put_some(m, "blog", &self.blog)?;
            put_some(m, "location", &self.location)?;
            put_some(m, "email", &self.email)?;
            put_some(m, "hireable", &self.hireable)?;
            put_some(m, "bio", &self.bio)?;
            put(m, "publicRepos", &self.public_repos)?;
            put(m, "followers", &self.followers)?;
            put(m, "following", &self.following)?;
            put(m, "createdAt", &self.created_at)?;
            put(m, "updatedAt", &self.updated_at)?;
            put_some(m, "plan", &self.plan)
        }
    }
    ops_runtime::record!(super::Account);

    impl Record for super::Plan {
        const NAME: &'static str = "Plan";
        const FIELDS: &'static [&'static str] = &["name", "space", "privateRepos"];
        fn index(name: &str) -> usize {
            match name {
                "name" => 0,
                "space" => 1,
                "privateRepos" => 2,
                _ => 3,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(name), Some(space), Some(private_repos)) => Ok(Self { name, space, private_repos }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "name", &self.name)?;
            put(m, "space", &self.space)?;
            put(m, "privateRepos", &self.private_repos)
        }
    }
    ops_runtime::record!(super::Plan);

    ops_runtime::names!(super::AccountType { "User" => User, "Organization" => Organization, "Bot" => Bot, _ => Other });

    impl Record for super::Reading {
        const NAME: &'static str = "Reading";
        const FIELDS: &'static [&'static str] = &["id", "sensor", "value", "valid"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "sensor" => 1,
                "value" => 2,
                "valid" => 3,
                _ => 4,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(sensor), Some(value), valid) => Ok(Self { id, sensor, value, valid }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "sensor", &self.sensor)?;
            put(m, "value", &self.value)?;
            put_some(m, "valid", &self.valid)
        }
    }
    ops_runtime::record!(super::Reading);

    impl Record for super::Order {
        const NAME: &'static str = "Order";
        const FIELDS: &'static [&'static str] =
            &["id", "customer", "lines", "status", "note", "total", "currency", "tags"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "customer" => 1,
                "lines" => 2,
                "status" => 3,
                "note" => 4,
                "total" => 5,
                "currency" => 6,
                "tags" => 7,
                _ => 8,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None, None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    4 => m.put(&mut s.4),
                    5 => m.put(&mut s.5),
                    6 => m.put(&mut s.6),
                    7 => m.put(&mut s.7),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(customer), Some(lines), Some(status), note, Some(total), currency, tags) => Ok(Self {
                    id,
                    customer,
                    lines,
                    status,
                    note,
                    total,
                    currency: currency.unwrap_or(super::Currency::Eur),
                    tags,
                }),
                s => Err(m.missing(&[
                    (0, s.0.is_none()),
                    (1, s.1.is_none()),
                    (2, s.2.is_none()),
                    (3, s.3.is_none()),
                    (5, s.5.is_none()),
                ])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "customer", &self.customer)?;
            put(m, "lines", &self.lines)?;
            put(m, "status", &self.status)?;
            put_some(m, "note", &self.note)?;
            put(m, "total", &self.total)?;
            put(m, "currency", &self.currency)?;
            put_some(m, "tags", &self.tags)
        }
    }
    ops_runtime::record!(super::Order);

    impl Record for super::Customer {
        const NAME: &'static str = "Customer";
        const FIELDS: &'static [&'static str] = &["id", "firstName", "lastName", "email", "address"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "firstName" => 1,
                "lastName" => 2,
                "email" => 3,
                "address" => 4,
                _ => 5,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    4 => m.put(&mut s.4),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(first_name), Some(last_name), email, address) => {
                    Ok(Self { id, first_name, last_name, email, address })
                }
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "firstName", &self.first_name)?;
            put(m, "lastName", &self.last_name)?;
            put_some(m, "email", &self.email)?;
            put_some(m, "address", &self.address)
        }
    }
    ops_runtime::record!(super::Customer);

    impl Record for super::Address {
        const NAME: &'static str = "Address";
        const FIELDS: &'static [&'static str] = &["street", "city", "zip", "country"];
        fn index(name: &str) -> usize {
            match name {
                "street" => 0,
                "city" => 1,
                "zip" => 2,
                "country" => 3,
                _ => 4,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(street), Some(city), Some(zip), country) => Ok(Self { street, city, zip, country }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "street", &self.street)?;
            put(m, "city", &self.city)?;
            put(m, "zip", &self.zip)?;
            put_some(m, "country", &self.country)
        }
    }
    ops_runtime::record!(super::Address);

    impl Record for super::Line {
        const NAME: &'static str = "Line";
        const FIELDS: &'static [&'static str] = &["sku", "quantity", "price", "discount"];
        fn index(name: &str) -> usize {
            match name {
                "sku" => 0,
                "quantity" => 1,
                "price" => 2,
                "discount" => 3,
                _ => 4,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(sku), Some(quantity), Some(price), discount) => Ok(Self { sku, quantity, price, discount }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "sku", &self.sku)?;
            put(m, "quantity", &self.quantity)?;
            put(m, "price", &self.price)?;
            put_some(m, "discount", &self.discount)
        }
    }
    ops_runtime::record!(super::Line);

    ops_runtime::names!(super::Status { "new" => New, "paid" => Paid, "shipped" => Shipped, "returned" => Returned, "cancelled" => Cancelled, _ => Other });

    ops_runtime::names!(super::Currency { "eur" => Eur, "usd" => Usd, "chf" => Chf, _ => Other });

    impl Record for super::Push {
        const NAME: &'static str = "Push";
        const FIELDS: &'static [&'static str] = &["id", "actor", "commits"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "actor" => 1,
                "commits" => 2,
                _ => 3,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(actor), Some(commits)) => Ok(Self { id, actor, commits }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "actor", &self.actor)?;
            put(m, "commits", &self.commits)
        }
    }
    ops_runtime::record!(super::Push);

    impl Record for super::Commit {
        const NAME: &'static str = "Commit";
        const FIELDS: &'static [&'static str] = &["sha", "message"];
        fn index(name: &str) -> usize {
            match name {
                "sha" => 0,
                "message" => 1,
                _ => 2,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(sha), Some(message)) => Ok(Self { sha, message }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "sha", &self.sha)?;
            put(m, "message", &self.message)
        }
    }
    ops_runtime::record!(super::Commit);

    impl Record for super::Issue {
        const NAME: &'static str = "Issue";
        const FIELDS: &'static [&'static str] = &["id", "actor", "title", "body", "labels"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "actor" => 1,
                "title" => 2,
                "body" => 3,
                "labels" => 4,
                _ => 5,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    4 => m.put(&mut s.4),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(actor), Some(title), body, Some(labels)) => Ok(Self { id, actor, title, body, labels }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none()), (4, s.4.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "actor", &self.actor)?;
            put(m, "title", &self.title)?;
            put_some(m, "body", &self.body)?;
            put(m, "labels", &self.labels)
        }
    }
    ops_runtime::record!(super::Issue);

    impl Record for super::Star {
        const NAME: &'static str = "Star";
        const FIELDS: &'static [&'static str] = &["id", "actor", "at"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "actor" => 1,
                "at" => 2,
                _ => 3,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(actor), Some(at)) => Ok(Self { id, actor, at }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (2, s.2.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "actor", &self.actor)?;
            put(m, "at", &self.at)
        }
    }
    ops_runtime::record!(super::Star);

    ops_runtime::tagged!(super::Event["kind"] { "push" => Push, "issue" => Issue, "star" => Star, _ => Other });
}
