//! Programs in their sandbox: what they can, what they cannot, and how they ask.

mod approval;
mod callers;
mod escapes;
mod journal;
mod killed;
mod load;
mod programs;
mod support;
