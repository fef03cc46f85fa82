//! Values that want to cost more than they may.

use std::time::{Duration, Instant};

use ops_runtime::record::{from_str, from_value};
use serde_json::{Value, json};

use super::types::*;

/// A node that is either of two records that look alike and hold two more such nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Left(Box<Left>),
    Right(Box<Right>),
}

pub struct Left {
    pub next: Node,
    pub stop: bool,
}

pub struct Right {
    pub next: Option<Node>,
}

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Left {
        const NAME: &'static str = "Left";
        const FIELDS: &'static [&'static str] = &["next", "stop"];
        type Slots = (Required<super::Node>, Required<bool>);
        fn make((next, stop): Values<Self>) -> Self {
            Self { next, stop }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.next, &self.stop)
        }
    }
    ops_runtime::__generated::table!(super::Left);

    impl Record for super::Right {
        const NAME: &'static str = "Right";
        const FIELDS: &'static [&'static str] = &["next"];
        type Slots = (Optional<super::Node>,);
        fn make((next,): Values<Self>) -> Self {
            Self { next }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.next,)
        }
    }
    ops_runtime::__generated::table!(super::Right);

    // Without the required properties, so that nothing but trying tells the variants apart.
    ops_runtime::__generated::untagged!(super::Node { Object => Left, Object => Right });
}

fn quick(run: impl FnOnce()) {
    let start = Instant::now();
    run();
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

fn nested(levels: usize, innermost: &str) -> String {
    format!("{}{innermost}{}", r#"{"next": "#.repeat(levels), "}".repeat(levels))
}

#[test]
fn unions_in_unions_cost_no_exponential_time() {
    quick(|| {
        let error = from_str::<Node>(&nested(100, "1")).unwrap_err();
        assert_eq!(error.message, "too many ways to read this as Node");
        assert!(from_value::<Node>(&serde_json::from_str(&nested(100, "1")).unwrap()).is_err());
        let long = format!("\"{}\"", "x".repeat(1 << 18));
        assert!(from_str::<Node>(&nested(100, &long)).is_err());
        // What fails does not spoil what comes after it.
        assert!(from_str::<Node>(&nested(5, "{}")).is_ok());
    });
}

#[test]
fn depth_is_limited_in_buffers_too() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
    let texts = [
        nested(10_000, "1"),
        deep("[", "]"),
        deep("{\"pet\":", ",\"kind\":\"issue\"}"),
        deep("{\"kind\":\"raw\",\"a\":", "}"),
        deep("{\"side\":1,\"inner\":", "}"),
        deep("{\"inner\":", ",\"side\":1}"),
        "[".repeat(10_000),
        "{\"parent\":".repeat(10_000),
    ];
    for text in texts {
        quick(|| {
            assert!(from_str::<Node>(&text).is_err());
            assert!(from_str::<Id>(&text).is_err());
            assert!(from_str::<Event>(&text).is_err());
            assert!(from_str::<Shape>(&text).is_err());
            assert!(from_str::<Pet>(&text).is_err());
            assert!(from_str::<Labels>(&text).is_err());
        });
    }
}

#[test]
fn long_values_cost_linear_time() {
    let entries: Vec<String> = (0..20_000).map(|n| format!("\"k{n}\": {n}")).collect();
    let object = format!("{{{}, \"kind\": \"map\"}}", entries.join(", "));
    quick(|| assert!(matches!(from_str::<Event>(&object).unwrap(), Event::Map(map) if map.len() == 20_000)));
    quick(|| assert!(from_str::<Shape>(&object).is_err()));
    let list = Value::Array((0..20_000).map(|_| json!({"side": 1, "inner": {"radius": 2}})).collect());
    quick(|| assert!(matches!(from_value::<Shape>(&list).unwrap(), Shape::Group(list) if list.len() == 20_000)));
    let failing = format!("[{}]", vec!["{\"x\": [1]}"; 10_000].join(","));
    quick(|| assert!(from_str::<Shape>(&failing).is_err()));
}

#[test]
fn nonsense_is_an_error() {
    let texts = [
        "",
        " ",
        "{",
        "}",
        "[}",
        "{]",
        "\"",
        "\"\\u12\"",
        "{\"id\"",
        "{\"id\":1,}",
        "nul",
        "-",
        "1e999",
        "{\"a\":1e999}",
        "\u{feff}{}",
        "{1:2}",
    ];
    for text in texts {
        assert!(from_str::<Pet>(text).is_err(), "{text}");
        assert!(from_str::<Event>(text).is_err(), "{text}");
        assert!(from_str::<Shape>(text).is_err(), "{text}");
        assert!(from_str::<Level>(text).is_err(), "{text}");
        assert!(from_str::<Labels>(text).is_err(), "{text}");
    }
}
