//! The routes of a registry: a tree of path segments, made again when the registry changes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use super::document::Texts;
use super::pattern::{Pattern, Rank, canonical, cut};
use super::read::Shapes;
use super::response::{Variants, is_bytes};
use crate::model::binding::template::{Piece, is_dots, pieces};
use crate::run::filter::Filters;
use crate::run::registry::Entry;
use crate::{HttpBinding, HttpResponse, OperationKind, Registry, Text};

/// An operation at the path of its binding.
pub(super) struct Route {
    pub(super) entry: Arc<Entry>,
    /// The names of the parameters in the path, in order.
    pub(super) names: Vec<String>,
    /// Pairs of the query in the template: those that every request has, and those with parameters.
    pub(super) fixed: Vec<String>,
    pub(super) query: Vec<Pattern>,
    gives_bytes: OnceLock<bool>,
    shapes: OnceLock<Shapes>,
    pub(super) variants: Variants,
}

impl Route {
    pub(super) fn binding(&self) -> Option<&HttpBinding> {
        self.entry.spec.http()
    }

    pub(super) fn shapes(&self, binding: &HttpBinding) -> &Shapes {
        self.shapes.get_or_init(|| Shapes::new(&self.entry.spec, binding, &self.names))
    }

    /// True if a success may be bytes, by its content type or by the schema of the output.
    pub(super) fn gives_bytes(&self) -> bool {
        let by_type = |response: &HttpResponse| response.status.is_success() && is_bytes(response);
        let gives = |binding: &HttpBinding| {
            let all = binding.responses.iter();
            all.clone().any(by_type) || self.entry.spec.gives_bytes(all).contains(&true)
        };
        *self.gives_bytes.get_or_init(|| self.binding().is_some_and(gives))
    }

    pub(super) fn is_stream(&self) -> bool {
        self.entry.spec.kind == OperationKind::Subscription
    }

    /// True if a query has the pairs of the template.
    fn has_fixed(&self, query: &str) -> bool {
        self.fixed.iter().all(|fixed| query.split('&').any(|pair| canonical(pair) == *fixed))
    }

    /// True if only the namespace distinguishes the two before their inputs are read.
    fn is_rival(&self, other: &Self) -> bool {
        self.entry.spec.namespace() != other.entry.spec.namespace()
            && self.method() == other.method()
            && self.fixed.len() == other.fixed.len()
            && self.fixed.iter().all(|fixed| other.fixed.contains(fixed))
    }

    fn method(&self) -> &str {
        self.binding().map_or("", |binding| &binding.method)
    }
}

/// A route that may match a request, with the texts of the parameters in its path.
pub(super) struct Match<'p> {
    pub(super) route: Arc<Route>,
    pub(super) path: Vec<Cow<'p, str>>,
}

/// The routes for a request's method and path.
pub(super) enum Found<'p> {
    /// The operations at the most specific path; several are distinguished by other parts of the request.
    Matches(Vec<Match<'p>>),
    /// Operations of several namespaces with the same path: none of them is chosen.
    Contested(Vec<Arc<Entry>>),
    /// The methods of the operations at the path, which has none for this method.
    Methods(Vec<String>),
    /// Nothing is at the path.
    Nothing,
}

/// The routes of all operations that are bound to HTTP.
#[derive(Default)]
pub(super) struct Routes {
    version: u64,
    root: Node,
    by_id: HashMap<String, Arc<Entry>>,
    /// All operations, in the order of their ids.
    pub(super) entries: Vec<Arc<Entry>>,
    /// The ids of operations that are reached only by id, since another namespace has the same method and path.
    pub(super) contested: BTreeSet<Text>,
    /// The document of all operations.
    pub(super) document: Texts,
}

#[derive(Default)]
struct Node {
    literals: BTreeMap<String, Self>,
    /// The most specific first.
    patterns: BTreeMap<Rank, (Pattern, Self)>,
    routes: Vec<Arc<Route>>,
    /// Operations with the same method and path as one of another namespace.
    contested: Vec<Arc<Route>>,
}

impl Routes {
    pub(super) fn of(registry: &Registry, filters: &Filters) -> Self {
        let table = registry.table();
        let mut routes = Self { version: table.version, ..Self::default() };
        let served = |entry: &&Arc<Entry>| entry.handler.is_some() && filters.accept(&entry.spec);
        for entry in table.iter().filter(served) {
            routes.by_id.insert(entry.spec.id.clone().into_owned(), entry.clone());
            routes.entries.push(entry.clone());
            if let Some(binding) = entry.spec.http() {
                routes.add(entry, binding);
            }
        }
        let Self { root, contested, .. } = &mut routes;
        root.contest(contested);
        routes
    }

    /// The operation of an id.
    pub(super) fn entry(&self, id: &str) -> Option<&Arc<Entry>> {
        self.by_id.get(id)
    }

    fn add(&mut self, entry: &Arc<Entry>, binding: &HttpBinding) {
        let pieces: Vec<Piece<'_>> = pieces(&binding.path).collect();
        let mut parts = pieces.split(|piece| *piece == Piece::Query);
        let (path, query) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut route = Route {
            entry: entry.clone(),
            names: Vec::new(),
            fixed: Vec::new(),
            query: Vec::new(),
            gives_bytes: OnceLock::new(),
            shapes: OnceLock::new(),
            variants: Variants::default(),
        };
        for pair in query.split(|piece| *piece == Piece::Pair).filter(|pair| !pair.is_empty()) {
            match Pattern::new(pair) {
                Ok(pattern) => route.query.push(pattern),
                Err(text) => route.fixed.push(text),
            }
        }
        let mut node = &mut self.root;
        for segment in segments(path) {
            node = match Pattern::new(&segment) {
                Ok(pattern) => {
                    route.names.extend_from_slice(pattern.names());
                    &mut node.patterns.entry(pattern.rank()).or_insert_with(|| (pattern, Node::default())).1
                }
                Err(text) => node.literals.entry(text).or_default(),
            };
        }
        node.routes.push(Arc::new(route));
        // Routes that require more of the query come first.
        node.routes.sort_by_key(|route| std::cmp::Reverse(route.fixed.len()));
    }

    /// The operations for a method, a path and a query.
    pub(super) fn find<'p>(&self, method: &str, path: &'p str, query: &str) -> Found<'p> {
        let path = path.strip_prefix('/').unwrap_or(path);
        // A request for the head is handled like one for the whole (RFC 9110, section 9.3.2), unless an operation at the
        // same path is for the head.
        let methods = [Some(method), (method == "HEAD").then_some("GET")];
        // A caller that may not call the operation of a path must not get to one of a less specific path instead.
        let (mut matches, mut contested) = (Vec::new(), Vec::new());
        self.root.find(Some(path), &mut Vec::new(), &mut |node, texts| {
            methods.into_iter().flatten().any(|method| {
                let fits = |route: &&Arc<Route>| route.method() == method && route.has_fixed(query);
                // Of the matching routes, those that require most of the query are chosen.
                let most = |routes: &[Arc<Route>]| routes.iter().filter(fits).map(|route| route.fixed.len()).max();
                if most(&node.contested) > most(&node.routes) {
                    contested.extend(node.contested.iter().filter(fits).map(|route| route.entry.clone()));
                    return true;
                }
                let mut fitting = node.routes.iter().filter(fits).peekable();
                while let Some(route) = fitting.next() {
                    let path = if fitting.peek().is_some() { texts.clone() } else { std::mem::take(texts) };
                    matches.push(Match { route: route.clone(), path });
                }
                !matches.is_empty()
            })
        });
        if !contested.is_empty() {
            return Found::Contested(contested);
        }
        if !matches.is_empty() {
            return Found::Matches(matches);
        }
        let mut methods: Vec<String> = Vec::new();
        self.root.find(Some(path), &mut Vec::new(), &mut |node, _| {
            let there = node.routes.iter().chain(&node.contested).filter(|route| route.has_fixed(query));
            methods.extend(there.map(|route| route.method().to_owned()));
            false
        });
        methods.sort_unstable();
        methods.dedup();
        if methods.is_empty() { Found::Nothing } else { Found::Methods(methods) }
    }
}

/// The pieces of each segment of a path.
fn segments<'a>(path: &[Piece<'a>]) -> Vec<Vec<Piece<'a>>> {
    let mut segments = vec![Vec::new()];
    let mut is_first = true;
    for piece in path {
        let Piece::Text(text) = piece else {
            segments.iter_mut().last().into_iter().for_each(|segment| segment.push(*piece));
            is_first = false;
            continue;
        };
        let text = if is_first { text.strip_prefix('/').unwrap_or(text) } else { text };
        is_first = false;
        for (at, part) in text.split('/').enumerate() {
            if at > 0 {
                segments.push(Vec::new());
            }
            if !part.is_empty() {
                segments.iter_mut().last().into_iter().for_each(|segment| segment.push(Piece::Text(part)));
            }
        }
    }
    segments
}

impl Node {
    /// Removes the routes of several namespaces that have everything else in common. Otherwise one of them would handle
    /// requests for another, and which one would depend on the served operations.
    fn contest(&mut self, contested: &mut BTreeSet<Text>) {
        self.literals.values_mut().for_each(|node| node.contest(contested));
        self.patterns.values_mut().for_each(|(_, node)| node.contest(contested));
        let is_contested = |route: &Arc<Route>| self.routes.iter().any(|other| route.is_rival(other));
        let (taken, left): (Vec<_>, Vec<_>) = self.routes.iter().cloned().partition(is_contested);
        if let [first, others @ ..] = taken.as_slice() {
            let others: Vec<&str> = others.iter().map(|route| route.entry.spec.id.as_ref()).collect();
            let (first, place) = (&first.entry.spec.id, first.binding().map_or("", |binding| &binding.path));
            tracing::warn!(
                operation = first.as_ref(),
                path = place,
                others = others.join(", "),
                "operations of several namespaces have one method and path: each is served at `/operations/NAMESPACE/NAME`"
            );
        }
        contested.extend(taken.iter().map(|route| route.entry.spec.id.clone()));
        (self.contested, self.routes) = (taken, left);
        if let [first, others @ ..] = self.routes.as_slice()
            && let Some(other) = others.iter().find(|other| other.names != first.names)
        {
            let place = |route: &Arc<Route>| route.binding().map_or("", |binding| &binding.path).to_owned();
            tracing::warn!(
                operation = first.entry.spec.id.as_ref(),
                path = place(first),
                other = other.entry.spec.id.as_ref(),
                other_path = place(other),
                "two operations have one path, with other names of its parameters: some tools refuse such a document; use the same names"
            );
        }
    }

    /// Visits each node that a path leads to, the most specific first, with the texts in the path, until a visit
    /// returns true. `segments` are the remaining ones. True if a visit returned true.
    fn find<'p>(
        &self,
        segments: Option<&'p str>,
        texts: &mut Vec<Cow<'p, str>>,
        visit: &mut impl FnMut(&Self, &mut Vec<Cow<'p, str>>) -> bool,
    ) -> bool {
        let Some(segments) = segments else { return visit(self, texts) };
        let (segment, rest) = cut(segments, b'/');
        if is_dots(segment) {
            return false;
        }
        let segment = canonical(segment);
        if let Some(node) = self.literals.get(segment.as_ref())
            && node.find(rest, texts, visit)
        {
            return true;
        }
        for (pattern, node) in self.patterns.values() {
            let length = texts.len();
            if pattern.texts(segment.clone(), texts) && node.find(rest, texts, visit) {
                return true;
            }
            texts.truncate(length);
        }
        false
    }
}

/// The routes of a registry, kept until the registry changes.
#[derive(Default)]
pub(super) struct Cache(ArcSwapOption<Routes>);

impl Cache {
    pub(super) fn get(&self, registry: &Registry, filters: &Filters) -> Arc<Routes> {
        if let Some(routes) = &*self.0.load()
            && routes.version == registry.version()
        {
            return routes.clone();
        }
        // Two threads may both make one; they are equal.
        let routes = Arc::new(Routes::of(registry, filters));
        self.0.store(Some(routes.clone()));
        routes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};

    use super::*;
    use crate::adapter::{Handler, Registration};
    use crate::{HttpParameter, OperationSpec, Schema};

    fn registry(paths: &[(&str, &str)]) -> Registry {
        let all: Vec<_> = paths.iter().map(|(method, path)| ("t", *method, *path)).collect();
        registry_of(&all)
    }

    fn registry_of(all: &[(&str, &str, &str)]) -> Registry {
        let registry = Registry::new();
        for (at, (namespace, method, path)) in all.iter().enumerate() {
            let mut spec = OperationSpec::new(OperationKind::Mutation, namespace, &format!("op{at}")).unwrap();
            spec.binding = crate::Binding::Http(HttpBinding::owned((*method).to_owned(), (*path).to_owned()));
            let handler = Handler::dynamic(|_: Value, _| async { Ok(json!(null)) });
            registry.register(Registration::new(spec, handler)).unwrap();
        }
        registry
    }

    fn found(routes: &Routes, method: &str, path: &str, query: &str) -> String {
        match routes.find(method, path, query) {
            Found::Nothing => "nothing".to_owned(),
            Found::Methods(methods) => methods.join(","),
            Found::Contested(all) => {
                let ids: Vec<&str> = all.iter().map(|entry| entry.spec.id.as_ref()).collect();
                format!("contested by {}", ids.join(","))
            }
            Found::Matches(all) => {
                let texts = |found: &Match<'_>| {
                    let texts = found.route.names.iter().zip(&found.path);
                    texts.map(|(name, text)| format!(" {name}={text}")).collect::<String>()
                };
                let all = all.iter().map(|found| format!("{}{}", found.route.entry.spec.name(), texts(found)));
                all.collect::<Vec<_>>().join("; ")
            }
        }
    }

    #[test]
    fn paths_lead_to_operations() {
        let routes = Routes::of(
            &registry(&[
                ("GET", "/pets"),
                ("GET", "/pets/{id}"),
                ("GET", "/pets/mine"),
                ("DELETE", "/pets/{petId}"),
                ("GET", "/pets/{id}.json"),
                ("GET", "/pets/{id}/toys/{toy}"),
                ("POST", "/a b/%C3%BC"),
                ("GET", "/do?action=list"),
                ("GET", "/do?action=show&id={id}"),
                ("GET", ""),
                ("GET", "no/slash"),
                ("GET", "//twice/"),
                ("GET", "/{b#c?d}/x/{e"),
                ("HEAD", "/files/{name}"),
                ("GET", "/files/index"),
                ("GET", "/files/{name}"),
            ]),
            &Filters::default(),
        );
        let table = [
            ("GET", "/pets", "", "op0"),
            ("HEAD", "/pets", "", "op0"),
            ("GET", "/pets/", "", "nothing"),
            ("POST", "/pets", "", "GET"),
            ("GET", "/pets/7", "", "op1 id=7"),
            ("DELETE", "/pets/7", "", "op3 petId=7"),
            ("PUT", "/pets/7", "", "DELETE,GET"),
            ("GET", "/pets/mine", "", "op2"),
            ("DELETE", "/pets/mine", "", "op3 petId=mine"),
            ("GET", "/pets/7.json", "", "op4 id=7"),
            ("GET", "/pets/a%2Fb/toys/%2e%2E", "", "nothing"),
            ("GET", "/pets/a%2Fb/toys/%00", "", "op5 id=a%2Fb toy=%00"),
            ("GET", "/pets/../pets", "", "nothing"),
            ("GET", "/pets//toys/1", "", "nothing"),
            ("POST", "/a%20b/%c3%bc", "", "op6"),
            ("GET", "/do", "action=list", "op7"),
            ("GET", "/do", "x=1&action=show", "op8"),
            ("GET", "/do", "", "nothing"),
            ("GET", "/", "", "op9"),
            ("GET", "/no/slash", "", "op10"),
            ("GET", "//twice/", "", "op11"),
            ("GET", "/1/x/%7Be", "", "op12 b#c?d=1"),
            ("GET", "/1/x/{e", "", "op12 b#c?d=1"),
            // The head of what `GET` gives, unless an operation of the same path is for the head.
            ("HEAD", "/files/index", "", "op14"),
            ("HEAD", "/files/a", "", "op13 name=a"),
            ("GET", "/files/a", "", "op15 name=a"),
        ];
        for (method, path, query, expected) in table {
            assert_eq!(found(&routes, method, path, query), expected, "{method} {path}?{query}");
        }
    }

    #[test]
    fn what_two_namespaces_have_is_nobodys() {
        let all = [
            ("a", "DELETE", "/items"),
            ("b", "DELETE", "/items"),
            ("a", "GET", "/items"),
            ("b", "POST", "/items"),
            ("a", "GET", "/items/{id}"),
            ("b", "GET", "/items/{name}"),
            ("c", "GET", "/items/{name}"),
            ("c", "GET", "/items/{name}.json"),
            ("a", "GET", "/do?action=list"),
            ("b", "GET", "/do?action=show"),
            ("a", "GET", "/do"),
            ("b", "GET", "/do"),
            ("a", "POST", "/same"),
            ("a", "POST", "/same"),
        ];
        let routes = Routes::of(&registry_of(&all), &Filters::default());
        let table = [
            ("DELETE", "/items", "", "contested by a.op0,b.op1"),
            ("GET", "/items", "", "op2"),
            ("POST", "/items", "", "op3"),
            ("GET", "/items/7", "", "contested by a.op4,b.op5,c.op6"),
            ("HEAD", "/items/7", "", "contested by a.op4,b.op5,c.op6"),
            ("GET", "/items/7.json", "", "op7 name=7"),
            ("GET", "/do", "action=show", "op9"),
            ("GET", "/do", "action=other", "contested by a.op10,b.op11"),
            ("POST", "/do", "", "GET"),
            ("PUT", "/items", "", "DELETE,GET,POST"),
            ("POST", "/same", "", "op12; op13"),
        ];
        for (method, path, query, expected) in table {
            assert_eq!(found(&routes, method, path, query), expected, "{method} {path}?{query}");
        }
        assert_eq!(routes.contested.len(), 7);
        assert!(routes.entry("b.op1").is_some());
    }

    /// A registry may have thousands of functions, and may change often.
    #[test]
    fn routes_make_no_schema() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        fn input() -> Value {
            MADE.fetch_add(1, Ordering::Relaxed);
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } })
        }
        let mut spec = OperationSpec::new(OperationKind::Query, "t", "two").unwrap().with_input(Schema::make(input));
        let mut binding = HttpBinding::owned("GET", "/two");
        binding.parameters = vec![HttpParameter::query("a"), HttpParameter::query("b")].into();
        spec.binding = crate::Binding::Http(binding);
        let handler = Handler::dynamic(|_: Value, _| async { Ok(json!(null)) });
        let registry = Registry::new();
        registry.register(Registration::new(spec, handler)).unwrap();
        let before = MADE.load(Ordering::Relaxed);
        let routes = Routes::of(&registry, &Filters::default());
        assert_eq!(found(&routes, "GET", "/two", ""), "two");
        assert_eq!(MADE.load(Ordering::Relaxed), before);
    }

    #[test]
    fn many_alike_cost_little() {
        // Each segment may be literal or not: a tree that is searched as a whole has no more nodes than templates.
        let paths: Vec<String> = (0..64_u32)
            .map(|bits| {
                (0..6).map(|at| if bits >> at & 1 == 1 { "/a".to_owned() } else { format!("/{{p{at}}}") }).collect()
            })
            .collect();
        let all: Vec<(&str, &str)> = paths.iter().map(|path| ("GET", path.as_str())).collect();
        let routes = Routes::of(&registry(&all), &Filters::default());
        let Found::Matches(found) = routes.find("GET", "/a/a/a/a/a/a", "") else { panic!("nothing was found") };
        assert_eq!((found.len(), found[0].path.len()), (1, 0));
    }
}
