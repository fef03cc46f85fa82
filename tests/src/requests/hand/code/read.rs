//! Reads generated code with a parser of Rust.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;
use syn::{Expr, Fields, FnArg, GenericArgument, ImplItem, Item, PathArguments, ReturnType, TraitItem};

use super::{Code, Operation, Record, Shape, Tags, Type};

/// Reads a generated module.
pub(super) fn read(source: &str) -> Result<Code, String> {
    let file = syn::parse_file(source).map_err(|error| format!("it is not Rust: {error}"))?;
    let mut reader = Reader::default();
    // Which names are types of the document must be known before types are read.
    for item in &file.items {
        match item {
            Item::Struct(item) => reader.names.push(item.ident.to_string()),
            Item::Enum(item) => reader.names.push(item.ident.to_string()),
            Item::Type(item) => reader.names.push(item.ident.to_string()),
            _ => {}
        }
    }
    file.items.iter().try_for_each(|item| reader.item(item))?;
    for item in &file.items {
        if let Item::Mod(module) = item {
            let items = module.content.as_ref().map(|(_, items)| items.as_slice()).unwrap_or_default();
            items.iter().try_for_each(|item| reader.inner(item))?;
        }
    }
    Ok(reader.code())
}

#[derive(Default)]
struct Reader {
    names: Vec<String>,
    code: Code,
    /// Operations by their types: the static with the spec, and the input.
    inputs: BTreeMap<String, (String, Type)>,
    /// The ids of operations by the statics with their specs, and if they are subscriptions.
    ids: BTreeMap<String, (String, bool)>,
    /// Methods: the operation's type, the name, and if it takes an input.
    methods: Vec<(String, String, bool)>,
}

impl Reader {
    fn code(mut self) -> Code {
        for (operation, method, takes_input) in self.methods {
            let Some((spec, input)) = self.inputs.get(&operation) else { continue };
            let Some((id, is_subscription)) = self.ids.get(spec) else { continue };
            let (id, input, is_subscription) = (id.clone(), input.clone(), *is_subscription);
            self.code.operations.push(Operation { id, name: operation, input, method, takes_input, is_subscription });
        }
        self.code
    }

    fn item(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::Type(item) => {
                let shape = Shape::Alias(self.type_(&item.ty));
                self.code.types.insert(item.ident.to_string(), shape);
            }
            Item::Struct(item) => {
                let shape = match &item.fields {
                    Fields::Named(fields) => {
                        let fields = fields.named.iter().map(|field| (text(&field.ident), self.type_(&field.ty)));
                        Shape::Record(Record { fields: fields.collect(), ..Record::default() })
                    }
                    Fields::Unnamed(fields) => match fields.unnamed.first() {
                        Some(field) => Shape::Newtype(self.type_(&field.ty)),
                        None => return Ok(()),
                    },
                    // An operation.
                    Fields::Unit => return Ok(()),
                };
                self.code.types.insert(item.ident.to_string(), shape);
            }
            Item::Enum(item) => {
                let variant = |variant: &syn::Variant| {
                    let type_ = variant.fields.iter().next().map_or(Type::Unit, |field| self.type_(&field.ty));
                    (variant.ident.to_string(), type_)
                };
                let shape = Shape::Union(item.variants.iter().map(variant).collect(), None);
                self.code.types.insert(item.ident.to_string(), shape);
            }
            Item::Impl(item) => self.operation(item),
            Item::Static(item) => {
                if let Some(found) = id(&item.expr) {
                    self.ids.insert(item.ident.to_string(), found);
                }
            }
            Item::Macro(item) if is(&item.mac.path, "methods") => {
                let file: syn::File = syn::parse2(item.mac.tokens.clone()).map_err(|error| error.to_string())?;
                for item in file.items {
                    if let Item::Trait(item) = item {
                        self.code.methods = item.ident.to_string();
                        item.items.iter().for_each(|item| self.method(item));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn operation(&mut self, item: &syn::ItemImpl) {
        let (mut input, mut spec) = (None, None);
        for part in &item.items {
            match part {
                ImplItem::Type(part) if part.ident == "Input" => input = Some(self.type_(&part.ty)),
                ImplItem::Const(part) if part.ident == "SPEC" => {
                    if let Expr::Reference(reference) = &part.expr {
                        spec = last(&reference.expr);
                    }
                }
                _ => {}
            }
        }
        if let (Type::Named(name), Some(input), Some(spec)) = (self.type_(&item.self_ty), input, spec) {
            self.inputs.insert(name, (spec, input));
        }
    }

    fn method(&mut self, item: &TraitItem) {
        let TraitItem::Fn(item) = item else { return };
        let takes_input = item.sig.inputs.iter().any(|argument| matches!(argument, FnArg::Typed(_)));
        let ReturnType::Type(_, type_) = &item.sig.output else { return };
        let Some(Type::Named(operation)) = arguments(type_).last().map(|type_| self.type_(type_)) else { return };
        self.methods.push((operation, item.sig.ident.to_string(), takes_input));
    }

    /// Reads an item of the module of impls.
    fn inner(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::Impl(item) => self.impl_(item),
            Item::Macro(item) => self.table(&item.mac),
            _ => Ok(()),
        }
    }

    fn impl_(&mut self, item: &syn::ItemImpl) -> Result<(), String> {
        let Type::Named(name) = self.type_(&item.self_ty) else { return Ok(()) };
        let of = item.trait_.as_ref().and_then(|trait_| trait_.0.segments.last());
        let trait_ = of.map(|segment| segment.ident.to_string());
        if trait_.as_deref() == Some("From") {
            let from = of.and_then(|segment| generic(&segment.arguments).into_iter().next());
            let from = from.map(|type_| match self.type_(type_) {
                // The generic argument, which becomes text.
                Type::Named(name) | Type::Other(name) if name == "T" => Type::Into(Box::new(Type::String)),
                type_ => type_,
            });
            self.code.conversions.extend(from.map(|from| (name, from)));
            return Ok(());
        }
        let mut new = None;
        let (mut properties, mut values, mut keeps_others) = (None, Vec::new(), false);
        for part in &item.items {
            match part {
                ImplItem::Fn(part) if trait_.is_none() && part.sig.ident == "new" => {
                    let argument = |argument: &FnArg| match argument {
                        FnArg::Typed(argument) => Some((pattern(&argument.pat), self.type_(&argument.ty))),
                        FnArg::Receiver(_) => None,
                    };
                    new = Some(part.sig.inputs.iter().filter_map(argument).collect());
                }
                ImplItem::Const(part) if part.ident == "FIELDS" => properties = Some(texts(&part.expr)),
                ImplItem::Const(part) if part.ident == "CONSTANTS" => values = constants(&part.expr)?,
                ImplItem::Type(part) if part.ident == "Slots" => keeps_others = has_rest(&part.ty),
                _ => {}
            }
        }
        let Some(Shape::Record(record)) = self.code.types.get_mut(&name) else { return Ok(()) };
        if new.is_some() {
            record.new = new;
        }
        if let Some(properties) = properties {
            (record.properties, record.values, record.keeps_others) = (properties, values, keeps_others);
        }
        Ok(())
    }

    /// Reads what a macro says of a type: `ops::names!(super::Status { "sold" => Sold, _ => Other })`.
    fn table(&mut self, mac: &syn::Macro) -> Result<(), String> {
        let Some(kind) = mac.path.segments.last().map(|segment| segment.ident.to_string()) else { return Ok(()) };
        if !["table", "names", "values", "tagged"].contains(&kind.as_str()) {
            return Ok(());
        }
        let tokens: Vec<TokenTree> = mac.tokens.clone().into_iter().collect();
        let name = tokens.iter().filter_map(ident).nth(1).ok_or("a table of no type")?;
        let groups: Vec<TokenStream> = tokens.iter().filter_map(group).collect();
        match (kind.as_str(), self.code.types.get_mut(&name)) {
            ("table", Some(Shape::Record(record))) => {
                record.has_default = tokens.iter().filter_map(ident).any(|name| name == "Default");
            }
            ("names" | "values", Some(shape)) => {
                let (constants, rest) = lines(groups.first())?;
                *shape = Shape::Constants(constants, rest);
            }
            ("tagged", Some(Shape::Union(_, tags))) => {
                let property = groups.first().cloned().map(syn::parse2::<syn::LitStr>);
                let property = property.and_then(Result::ok).ok_or("no property")?.value();
                let (variants, _) = lines(groups.get(1))?;
                *tags = Some(Tags { property, variants });
            }
            _ => {}
        }
        Ok(())
    }

    fn type_(&self, type_: &syn::Type) -> Type {
        match type_ {
            syn::Type::Tuple(tuple) if tuple.elems.is_empty() => Type::Unit,
            syn::Type::Tuple(tuple) => Type::Tuple(tuple.elems.iter().map(|item| self.type_(item)).collect()),
            syn::Type::Reference(reference) => self.type_(&reference.elem),
            syn::Type::ImplTrait(bounds) => bounds
                .bounds
                .iter()
                .find_map(|bound| match bound {
                    syn::TypeParamBound::Trait(bound) => bound.path.segments.last(),
                    _ => None,
                })
                .and_then(|segment| generic(&segment.arguments).into_iter().next())
                .map_or(Type::Other("impl".to_owned()), |inner| Type::Into(Box::new(self.type_(inner)))),
            syn::Type::Path(path) => self.path(&path.path),
            _ => Type::Other("another type".to_owned()),
        }
    }

    fn path(&self, path: &syn::Path) -> Type {
        let Some(segment) = path.segments.last() else { return Type::Unit };
        let name = segment.ident.to_string();
        let first = path.segments.first().map(|first| first.ident.to_string()).unwrap_or_default();
        let is_own = first == "super" || path.segments.len() == 1 && self.names.contains(&name);
        if is_own {
            return Type::Named(name);
        }
        let inner = |at: usize| {
            let inner = generic(&segment.arguments).into_iter().nth(at).map_or(Type::Unit, |type_| self.type_(type_));
            Box::new(inner)
        };
        match name.as_str() {
            "bool" => Type::Bool,
            "i32" | "i64" | "u32" | "u64" => Type::Integer,
            "f64" => Type::Float,
            "String" | "str" => Type::String,
            "Value" => Type::Value,
            "Body" => Type::Body,
            "Vec" => Type::List(inner(0)),
            "BTreeMap" => Type::Map(inner(1)),
            "Option" => Type::Option(inner(0)),
            "Box" => Type::Boxed(inner(0)),
            _ => Type::Other(name),
        }
    }
}

fn text(ident: &Option<syn::Ident>) -> String {
    ident.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn is(path: &syn::Path, name: &str) -> bool {
    path.segments.last().is_some_and(|segment| segment.ident == name)
}

fn last(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// The id of the operation whose spec an expression is: the argument of its first call.
fn id(expr: &Expr) -> Option<(String, bool)> {
    let mut expr = expr;
    while let Expr::MethodCall(call) = expr {
        expr = &call.receiver;
    }
    let Expr::Call(call) = expr else { return None };
    let kind = last(&call.func)?;
    let is_kind = ["query", "mutation", "subscription"].contains(&kind.as_str());
    call.args.first().and_then(literal).filter(|_| is_kind).map(|id| (id, kind == "subscription"))
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// The texts of `&["a", "b"]`.
fn texts(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::Reference(reference) => texts(&reference.expr),
        Expr::Array(array) => array.elems.iter().filter_map(literal).collect(),
        _ => Vec::new(),
    }
}

/// The values of `&[Literal::Text("a"), Literal::Integer(1)]`.
fn constants(expr: &Expr) -> Result<Vec<Value>, String> {
    match expr {
        Expr::Reference(reference) => constants(&reference.expr),
        Expr::Array(array) => array.elems.iter().map(constant).collect(),
        _ => Err("constants are no list".to_owned()),
    }
}

fn constant(expr: &Expr) -> Result<Value, String> {
    match expr {
        Expr::Call(call) => call.args.first().map_or(Ok(Value::Null), constant),
        Expr::Unary(unary) => match constant(&unary.expr)? {
            Value::Number(number) => scalar(&format!("-{number}")),
            other => Ok(other),
        },
        Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Str(text) => Ok(Value::String(text.value())),
            syn::Lit::Bool(bool) => Ok(Value::Bool(bool.value)),
            syn::Lit::Int(number) => scalar(number.base10_digits()),
            syn::Lit::Float(number) => scalar(number.base10_digits()),
            _ => Err("a constant of another kind".to_owned()),
        },
        _ => Err("a constant is no literal".to_owned()),
    }
}

fn pattern(pattern: &syn::Pat) -> String {
    match pattern {
        syn::Pat::Ident(pattern) => pattern.ident.to_string(),
        _ => String::new(),
    }
}

/// The generic arguments of a type that are types.
fn arguments(type_: &syn::Type) -> Vec<&syn::Type> {
    match type_ {
        syn::Type::Path(path) => {
            path.path.segments.last().map(|segment| generic(&segment.arguments)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn generic(arguments: &PathArguments) -> Vec<&syn::Type> {
    let PathArguments::AngleBracketed(list) = arguments else { return Vec::new() };
    let types = list.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(type_) => Some(type_),
        _ => None,
    });
    types.collect()
}

/// True if a tuple of slots ends with that for undeclared properties.
fn has_rest(slots: &syn::Type) -> bool {
    match slots {
        syn::Type::Tuple(tuple) => tuple.elems.last().is_some_and(has_rest),
        syn::Type::Path(path) => is(&path.path, "Rest"),
        _ => false,
    }
}

fn ident(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn group(token: &TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    }
}

/// The lines of `{ "a" | "b" => A, 1 => N1, else A, _ => Other }`: values and their variants, and the variant for all
/// other values. The line with `else` is skipped: it says how objects without a tag are read, and these tests write.
fn lines(tokens: Option<&TokenStream>) -> Result<(Vec<(Value, String)>, String), String> {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let (mut values, mut value, mut is_left) = (Vec::new(), String::new(), true);
    for token in tokens.cloned().into_iter().flatten() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => {
                value.clear();
                is_left = true;
            }
            TokenTree::Punct(punct) if punct.as_char() == '|' => values.push(std::mem::take(&mut value)),
            TokenTree::Punct(punct) if punct.as_char() == '=' => {
                values.push(std::mem::take(&mut value));
                is_left = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == '>' => {}
            token if is_left => value.push_str(&token.to_string()),
            token => {
                for text in values.drain(..) {
                    match text.as_str() {
                        "_" => rest = token.to_string(),
                        text => found.push((scalar(text)?, token.to_string())),
                    }
                }
            }
        }
    }
    Ok((found, rest))
}

/// The JSON of a literal.
fn scalar(text: &str) -> Result<Value, String> {
    if let Ok(text) = syn::parse_str::<syn::LitStr>(text) {
        return Ok(Value::String(text.value()));
    }
    serde_json::from_str(text).map_err(|error| format!("`{text}` is no value: {error}"))
}
