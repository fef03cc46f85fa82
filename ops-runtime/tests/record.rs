//! The generic serde of generated types, through types as a generator prints them.
#![allow(unreachable_pub, dead_code)]

#[path = "record/alike.rs"]
mod alike;
#[path = "record/deep.rs"]
mod deep;
#[path = "record/foreign.rs"]
mod foreign;
#[path = "record/hostile.rs"]
mod hostile;
#[path = "../../tests/src/seeded.rs"]
mod seeded;
#[path = "record/shadow.rs"]
mod shadow;
#[path = "record/shapes.rs"]
mod shapes;
#[path = "record/tags.rs"]
mod tags;
#[path = "record/twins.rs"]
mod twins;
#[path = "record/types.rs"]
mod types;
