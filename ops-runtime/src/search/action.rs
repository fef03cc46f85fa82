//! What operations do, and which words of a question ask for it.

use super::words::has;
use crate::binding::Binding;
use crate::spec::{OperationKind, OperationSpec};

/// What an operation does to what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    List,
    Get,
    Create,
    Update,
    Delete,
    /// Something else that changes something: `cancel`, `merge`.
    Other,
}

/// Verbs by what they mean, as names and titles of operations begin with them.
const VERBS: &[(Action, &str)] = &[
    (Action::List, "list browse enumerate all index search query find filter"),
    (
        Action::Get,
        "get gets show read fetch retrieve retrieves view describe inspect download check returns \
     return lookup count see display whoami head export watch",
    ),
    (Action::Create, "create creates add adds insert new make register generate upload import provision place"),
    (
        Action::Update,
        "update updates edit modify change changes patch set sets rename replace replaces put configure \
     adjust alter partially",
    ),
    (Action::Delete, "delete deletes remove removes destroy drop erase purge clear unset detach wipe"),
];

/// Verbs that change something in another way, as questions begin with them.
const OTHERS: &str = "\
    abort accept acknowledge activate append apply approve archive assign attach authorize ban block book boot \
    build buy call cancel capture charge clone close collect commit complete confirm connect convert copy \
    deactivate decline deny deploy disable disconnect dismiss dispatch duplicate enable end execute expire \
    extend file finish follow fork forward freeze grant hand hold invite invoke issue join kill launch leave \
    link lock mark merge move mute notify open order pause pay pin play post press publish push react reboot \
    redeploy refresh refund reject release renew reopen reply rerun resend resolve restart restore resume retry \
    revert revoke rotate run save scale schedule send share ship sign skip split star start stop submit \
    subscribe suspend switch sync tag terminate transfer trigger turn type unarchive unban unblock unfollow \
    unlock unpin unsubscribe upgrade void withdraw write";

impl Action {
    /// What this verb of a question asks for.
    pub(super) fn asked(verb: &str) -> Option<Self> {
        match verb {
            "take" | "do" => Some(Self::Create),
            "watch" | "follow" | "all" | "index" | "head" | "count" | "place" => Some(Self::Other),
            _ => Self::of_verb(verb),
        }
        .or_else(|| has(OTHERS, verb).then_some(Self::Other))
    }

    /// What this verb means, if it is one of the five.
    pub(super) fn of_verb(verb: &str) -> Option<Self> {
        VERBS.iter().find(|(_, verbs)| has(verbs, verb)).map(|(action, _)| *action)
    }

    /// What the verb with this stem means, if it is one of the five.
    pub(super) fn of_stem(stem: &str) -> Option<Self> {
        match stem {
            "list" | "search" | "find" => Some(Self::List),
            "get" | "show" | "read" | "count" | "check" => Some(Self::Get),
            "creat" | "add" | "generat" | "upload" => Some(Self::Create),
            "updat" | "set" | "edit" | "renam" | "replac" => Some(Self::Update),
            "delet" | "remov" => Some(Self::Delete),
            _ => None,
        }
    }

    /// What an operation does, by the words of its name and its title, else by its method.
    pub(super) fn of(spec: &OperationSpec, name: &[String], title: &[String]) -> Self {
        let verb = title.first().and_then(|word| Self::of_verb(word));
        // `Returns a list of`, `Get all`.
        let is_list =
            |words: &[String]| words.iter().take(4).any(|word| matches!(word.as_str(), "list" | "all" | "lists"));
        if let Some(action) = verb {
            return if action == Self::Get && is_list(title) { Self::List } else { action };
        }
        let method = match &spec.binding {
            Binding::Http(http) => http.method.as_ref(),
            _ => "",
        };
        // `PostRefunds` says no more than its method does.
        let is_last_get = name.last().is_some_and(|word| word == "get")
            && !matches!(&spec.binding, Binding::Http(http) if http.method == "GET");
        if is_last_get {
            return Self::Get;
        }
        let of_name = |word: &String| match word.as_str() {
            "get" | "put" | "patch" | "post" => None,
            word => Self::of_verb(word),
        };
        let named = name.iter().find_map(of_name);
        let of_method = match method {
            "GET" | "HEAD" if ends_with_parameter(spec) => Some(Self::Get),
            "GET" | "HEAD" => Some(Self::List),
            "DELETE" => Some(Self::Delete),
            "PUT" | "PATCH" => Some(Self::Update),
            _ => None,
        };
        match (of_method, named) {
            (Some(Self::Get | Self::List), Some(named @ (Self::Get | Self::List))) => named,
            (Some(action), _) | (None, Some(action)) => action,
            (None, None) if spec.kind == OperationKind::Query => Self::Get,
            (None, None) => Self::Other,
        }
    }

    /// The words that mean what this does, which an operation has whatever it is called.
    pub(super) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::List => &["list", "get"],
            Self::Get => &["get"],
            Self::Create => &["create"],
            Self::Update => &["update"],
            Self::Delete => &["delete"],
            Self::Other => &[],
        }
    }

    /// How well an operation that does this answers a question that asks for `wanted`: 1 if it does.
    pub(super) const fn fit(self, wanted: Self) -> f32 {
        use Action::{Create, Delete, Get, List, Other, Update};
        match (wanted, self) {
            (List, List) | (Get, Get) | (Create, Create) | (Update, Update) | (Delete, Delete) => 1.0,
            (List, Get) | (Get, List) => 0.93,
            (Create | Update, Other) | (Other, Create | Update | Other) => 0.9,
            (Create, Update) | (Update, Create) => 0.8,
            (Delete, Other) | (Other, Delete) => 0.8,
            // Who asks for something wants nothing changed.
            (List | Get, Create | Update | Delete) => 0.45,
            _ => 0.6,
        }
    }
}

/// True if the path of an operation ends with a parameter: it is about one thing.
pub(super) fn ends_with_parameter(spec: &OperationSpec) -> bool {
    spec.http().is_some_and(|http| http.path.trim_end_matches('/').ends_with('}'))
}
