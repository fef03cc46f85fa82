//! The syntax of queries (RFC 9535, section 2).

use serde_json::{Number, Value};

use super::filter::pattern;
use super::query::{Expression, Malformed, Operand, Operator, Path, Pattern, Segment, Selector};

/// How deep filters and brackets may be nested.
const MAX_DEPTH: usize = 64;

/// The integers that a query may name: those that a double holds exactly (section 2.1).
const MAX_INTEGER: i64 = (1 << 53) - 1;

type Parsed<T> = Result<T, Malformed>;

/// The segments of a query.
pub(super) fn query(text: &str) -> Parsed<Vec<Segment>> {
    let mut parser = Parser { text, rest: text, depth: 0 };
    if !parser.eat("$") {
        return Err(parser.wrong("a query begins with `$`"));
    }
    let segments = parser.segments()?;
    if !parser.rest.is_empty() {
        return Err(parser.wrong("the query should end here, or go on with `.name`, `['name']` or `[?filter]`"));
    }
    Ok(segments)
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
}

/// What an argument of a function, or a side of a comparison, is.
enum Term {
    Operand(Operand),
    /// A path that may select several nodes.
    Nodes(Path),
    /// `match(..)` or `search(..)`.
    Test(Expression),
}

impl<'t> Parser<'t> {
    fn wrong(&self, message: impl Into<String>) -> Malformed {
        let before = self.text.len() - self.rest.len();
        let at = self.text.get(..before).map_or(0, |before| before.chars().count());
        Malformed { message: message.into(), at }
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.wrong(format!("`{token}` is expected here"))) }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Runs a part that is nested.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong(format!("the query is nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn segments(&mut self) -> Parsed<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            let before = self.rest;
            self.space();
            if self.eat("..") {
                let selectors = if self.rest.starts_with('[') { self.brackets()? } else { vec![self.shorthand()?] };
                segments.push(Segment { descends: true, selectors });
            } else if self.eat(".") {
                segments.push(Segment { descends: false, selectors: vec![self.shorthand()?] });
            } else if self.rest.starts_with('[') {
                segments.push(Segment { descends: false, selectors: self.brackets()? });
            } else {
                // Space belongs to a query only between its segments.
                self.rest = before;
                return Ok(segments);
            }
        }
    }

    /// What follows a dot.
    fn shorthand(&mut self) -> Parsed<Selector> {
        if self.eat("*") {
            return Ok(Selector::Wildcard);
        }
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        if !self.peek().is_some_and(is_first) {
            return Err(self.wrong("a name or `*` is expected here: write other names as `['name']`"));
        }
        let end = self.rest.find(|c: char| !is_first(c) && !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if rest.starts_with('-') {
            return Err(self.wrong("a name with `-` needs brackets: write `['name']`"));
        }
        Ok(Selector::Name(name.to_owned()))
    }

    fn brackets(&mut self) -> Parsed<Vec<Selector>> {
        self.expect("[")?;
        let mut selectors = Vec::new();
        loop {
            self.space();
            selectors.push(self.nested(Self::selector)?);
            self.space();
            if !self.eat(",") {
                self.expect("]")?;
                return Ok(selectors);
            }
        }
    }

    fn selector(&mut self) -> Parsed<Selector> {
        match self.peek() {
            Some('\'' | '"') => self.string().map(Selector::Name),
            Some('*') => {
                self.expect("*")?;
                Ok(Selector::Wildcard)
            }
            Some('?') => {
                self.expect("?")?;
                self.space();
                self.or().map(Selector::Filter)
            }
            _ => self.index(),
        }
    }

    fn index(&mut self) -> Parsed<Selector> {
        let wrong = self.wrong("a selector is expected here: `'name'`, `*`, a number, or `?` and a filter");
        let start = self.integer()?;
        self.space();
        if !self.eat(":") {
            return start.map(Selector::Index).ok_or(wrong);
        }
        self.space();
        let end = self.integer()?;
        self.space();
        let mut step = None;
        if self.eat(":") {
            self.space();
            step = self.integer()?;
        }
        Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
    }

    /// An integer; `None` if there is none.
    fn integer(&mut self) -> Parsed<Option<i64>> {
        let digits = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let length = self.rest.len() - digits.len() + count;
        let text = self.rest.get(..length).unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        let is_plain = text == "0" || !digits.starts_with('0');
        let number = text.parse().ok().filter(|number: &i64| is_plain && number.abs() <= MAX_INTEGER);
        let number = number.ok_or_else(|| self.wrong("this is no integer of a query"))?;
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok(Some(number))
    }

    /// A text in single or double quotes.
    fn string(&mut self) -> Parsed<String> {
        let quote = self.peek().unwrap_or('"');
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        let at = |parser: &Self, at: usize, message: &str| {
            let rest = parser.rest.get(at..).unwrap_or_default();
            Parser { text: parser.text, rest, depth: 0 }.wrong(message)
        };
        while let Some((index, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.rest = self.rest.get(index + c.len_utf8()..).unwrap_or_default();
                    return Ok(text);
                }
                '\\' => {
                    let escaped = match chars.next().map(|(_, c)| c) {
                        Some('b') => Some('\u{8}'),
                        Some('f') => Some('\u{c}'),
                        Some('n') => Some('\n'),
                        Some('r') => Some('\r'),
                        Some('t') => Some('\t'),
                        Some(c @ ('/' | '\\')) => Some(c),
                        Some(c) if c == quote => Some(c),
                        Some('u') => escaped(&mut || chars.next().map(|(_, c)| c)),
                        _ => None,
                    };
                    text.push(escaped.ok_or_else(|| at(self, index, "this escape is none of JSON"))?);
                }
                _ if c < ' ' => return Err(at(self, index, "a control character needs an escape, such as `\\n`")),
                _ => text.push(c),
            }
        }
        Err(self.wrong("this text does not end"))
    }

    fn or(&mut self) -> Parsed<Expression> {
        self.list("||", Self::and, Expression::Or)
    }

    fn and(&mut self) -> Parsed<Expression> {
        self.list("&&", Self::basic, Expression::And)
    }

    /// One part, or several with a token between them.
    fn list(
        &mut self,
        between: &str,
        part: fn(&mut Self) -> Parsed<Expression>,
        all: fn(Vec<Expression>) -> Expression,
    ) -> Parsed<Expression> {
        let first = part(self)?;
        let mut rest = Vec::new();
        loop {
            self.space();
            if !self.eat(between) {
                break;
            }
            self.space();
            rest.push(part(self)?);
        }
        Ok(if rest.is_empty() { first } else { all(std::iter::once(first).chain(rest).collect()) })
    }

    fn basic(&mut self) -> Parsed<Expression> {
        if self.eat("!") {
            self.space();
            // Only a test in brackets or of existence can be negated.
            let wrong = self.wrong("a comparison is negated in brackets: `!(..)`");
            let is_braced = self.rest.starts_with('(');
            let inner = if is_braced { self.brace()? } else { self.comparison()? };
            return match inner {
                Expression::Compare(..) if !is_braced => Err(wrong),
                inner => Ok(Expression::Not(Box::new(inner))),
            };
        }
        if self.rest.starts_with('(') { self.brace() } else { self.comparison() }
    }

    fn brace(&mut self) -> Parsed<Expression> {
        self.expect("(")?;
        self.space();
        let inner = self.nested(Self::or)?;
        self.space();
        self.expect(")")?;
        Ok(inner)
    }

    /// A comparison, or a test of one term.
    fn comparison(&mut self) -> Parsed<Expression> {
        let start = self.wrong("");
        let wrong = |message: &str| Malformed { message: message.to_owned(), at: start.at };
        let left = self.term()?;
        let before = self.rest;
        self.space();
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::Unequal),
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let Some((_, operator)) = operators.into_iter().find(|(token, _)| self.eat(token)) else {
            self.rest = before;
            return match left {
                Term::Nodes(path) | Term::Operand(Operand::Path(path)) => Ok(Expression::Exists(path)),
                Term::Test(test) => Ok(test),
                Term::Operand(_) => Err(wrong("a value alone is no filter: compare it, such as `@.name == 'x'`")),
            };
        };
        self.space();
        let right = self.term()?;
        match (left, right) {
            (Term::Operand(left), Term::Operand(right)) => Ok(Expression::Compare(left, operator, right)),
            (Term::Test(_), _) | (_, Term::Test(_)) => Err(wrong("`match` and `search` are not compared")),
            _ => Err(wrong("only a path to one node can be compared: use no `*`, `..`, slice or filter in it")),
        }
    }

    fn term(&mut self) -> Parsed<Term> {
        let value = |value| Ok(Term::Operand(Operand::Literal(value)));
        match self.peek() {
            Some('@' | '$') => {
                let path =
                    Path { is_relative: self.eat("@") || !self.eat("$"), segments: self.nested(Self::segments)? };
                Ok(if path.is_singular() { Term::Operand(Operand::Path(path)) } else { Term::Nodes(path) })
            }
            Some('\'' | '"') => value(Value::String(self.string()?)),
            Some('-' | '0'..='9') => self.number().map(|number| Term::Operand(Operand::Literal(number))),
            Some('a'..='z') => {
                let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                if rest.starts_with('(') {
                    return self.nested(|parser| parser.function(name, rest));
                }
                let literal = match name {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    "null" => Value::Null,
                    _ => return Err(self.wrong(format!("`{name}` is no value: text has quotes"))),
                };
                self.rest = rest;
                value(literal)
            }
            _ => Err(self.wrong("a value, `@` or `$` is expected here")),
        }
    }

    fn number(&mut self) -> Parsed<Value> {
        let end = self.rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        // JSON has the same numbers, except that it knows no `-0`.
        let number: Option<Number> = serde_json::from_str(text).ok();
        let number = number.ok_or_else(|| self.wrong("this is no number"))?;
        self.rest = rest;
        Ok(Value::Number(number))
    }

    /// A call, at the name of its function.
    fn function(&mut self, name: &'t str, rest: &'t str) -> Parsed<Term> {
        let start = self.wrong(match name {
            "length" => "`length` takes one value: a literal, or a path to one node",
            "count" | "value" => "this function takes one path",
            "match" | "search" => "this function takes a text and a regular expression: literals, or paths to one node",
            _ => "there is no such function: there are `length`, `count`, `match`, `search` and `value`",
        });
        self.rest = rest;
        self.expect("(")?;
        let mut arguments = Vec::new();
        self.space();
        while !self.rest.starts_with(')') {
            arguments.push(self.term()?);
            self.space();
            if !self.eat(",") {
                break;
            }
            self.space();
            if self.rest.starts_with(')') {
                return Err(self.wrong("an argument is expected here"));
            }
        }
        self.expect(")")?;
        let mut arguments = arguments.into_iter();
        let taken = (arguments.next(), arguments.next(), arguments.next());
        let operand = match (name, taken) {
            ("length", (Some(Term::Operand(value)), None, None)) => Operand::Length(Box::new(value)),
            ("count", (Some(Term::Nodes(path) | Term::Operand(Operand::Path(path))), None, None)) => {
                Operand::Count(path)
            }
            ("value", (Some(Term::Nodes(path) | Term::Operand(Operand::Path(path))), None, None)) => {
                Operand::Value(path)
            }
            ("match" | "search", (Some(Term::Operand(text)), Some(Term::Operand(by)), None)) => {
                let is_whole = name == "match";
                let by = match by {
                    Operand::Literal(Value::String(text)) => {
                        let found = pattern(&text, is_whole);
                        Pattern::Known(found.map_err(|message| Malformed { message, ..start })?)
                    }
                    other => Pattern::Found(other),
                };
                return Ok(Term::Test(Expression::Matches { text, by, is_whole }));
            }
            _ => return Err(start),
        };
        Ok(Term::Operand(operand))
    }
}

/// The character of an escape `\uXXXX`, or of two for one beyond the basic plane.
fn escaped(next: &mut dyn FnMut() -> Option<char>) -> Option<char> {
    let mut unit = || (0..4).try_fold(0, |unit, _| Some(unit * 16 + next()?.to_digit(16)?));
    let first = unit()?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    if (next()?, next()?) != ('\\', 'u') {
        return None;
    }
    let mut unit = || (0..4).try_fold(0, |unit, _| Some(unit * 16 + next()?.to_digit(16)?));
    let second = unit().filter(|second| (0xdc00..0xe000).contains(second))?;
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}
