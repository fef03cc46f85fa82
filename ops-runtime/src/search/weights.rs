//! How much each of the [`Features`](super::features::Features) counts.
//!
//! They were fitted to `dev.tsv`, `drawn.tsv` and `drawn2.tsv` by the likelihood that the first of the best 80 is an answer: a
//! softmax over the weighted sums, with the square of each weight (for a feature with a deviation of 1) counted 0.03 times against
//! it. The vectors had not been taught the questions by whose nearness the weights were fitted (`meaning/tune.py --without`).

/// How much each number counts. What the score has already, such as what is covered, is taken back where it counts too much.
pub(super) struct Weights {
    /// How much of the question stands in the first sentence, in the name or title, anywhere, and as the question says it.
    pub(super) lead: f32,
    pub(super) title: f32,
    pub(super) all: f32,
    pub(super) exact: f32,
    /// The same of what is rare in the namespace.
    pub(super) local: f32,
    /// What follows the verb stands in the name or title; the verb stands anywhere.
    pub(super) object: f32,
    pub(super) verb: f32,
    /// The path ends with a parameter, where one thing is asked for, or against it, where all are.
    pub(super) item: f32,
    /// Only something to see, where a change is asked for.
    pub(super) read_for_change: f32,
    /// How many operations the namespace has, as a logarithm, and how many words the first sentence.
    pub(super) size: f32,
    pub(super) lead_length: f32,
    /// How near the namespace is by what it means, and the name and title by what sets them apart from it.
    pub(super) center: f32,
    pub(super) apart: f32,
    /// How much of the name, the title or the path the question says, by how rare words are, and how much is left.
    pub(super) said: f32,
    pub(super) left: f32,
    pub(super) left_local: f32,
    /// How near the nearest words are: those of a part to the question, those of the question to what is rare in the namespace.
    pub(super) near_part: f32,
    pub(super) near_local: f32,
    pub(super) squares_local: f32,
    pub(super) sharp_keys: f32,
    /// With the first sentence.
    pub(super) near_both: f32,
    pub(super) sharp_both: f32,
    pub(super) back_both: f32,
}

pub(super) const WEIGHTS: Weights = Weights {
    lead: -0.332,
    title: -0.4,
    all: 0.426,
    exact: -0.789,
    local: 0.336,
    object: -0.164,
    verb: 0.15,
    item: 0.291,
    read_for_change: -0.16,
    size: -0.0465,
    lead_length: -0.0144,
    center: 0.178,
    apart: 0.466,
    said: -0.387,
    left: -0.01,
    left_local: -0.0107,
    near_part: 0.573,
    near_local: 0.386,
    squares_local: -0.362,
    sharp_keys: -0.601,
    near_both: 0.747,
    sharp_both: -0.306,
    back_both: 0.313,
};
