//! What a question wants done: the verb that it begins with, or what its form says.

use super::super::action::Action;
use super::super::synonyms;
use super::tokens::Token;

/// Words with which a question begins that wants to know something, those after `how` and those after `do` that say so.
const ASKING: &[&str] =
    &["are", "did", "does", "has", "is", "was", "were", "what", "when", "where", "which", "who", "whose", "why"];
const AMOUNTS: &[&str] = &["big", "far", "fast", "large", "long", "many", "much", "often"];
const PERSONS: &[&str] = &["i", "they", "we", "you"];

/// How many words a clause has at most that only names an API.
const SHORT: usize = 3;

/// Words before which a verb stands rather than a noun, and those after which a noun stood.
const ARTICLES: &[&str] =
    &["a", "all", "an", "another", "each", "every", "my", "one", "our", "some", "the", "these", "this", "those"];
const AFTER_NOUNS: &[&str] = &["at", "between", "from", "in", "of", "on", "that", "whose", "with"];

/// The second parts of verbs such as `turn off`.
pub(super) const PARTICLES: &[&str] =
    &["again", "away", "back", "down", "hold", "in", "invalid", "off", "on", "out", "over", "run", "under", "up"];

/// What is wanted, and how sure that is, if a clause begins as those do that want to know something: the first, one after
/// a name (`github: who ..`), or any of a text that ends with a question mark.
pub(super) fn asked(tokens: &[Token], is_question: bool) -> Option<(Action, f32)> {
    let is = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|token| token.is_any(words));
    let starts = (0..tokens.len()).filter(|at| {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at)).map(|token| token.clause);
        before.is_none_or(|before| tokens.get(*at).is_some_and(|token| token.clause != before))
    });
    let asks = starts
        .filter(|at| *at <= SHORT || is_question)
        .any(|at| is(at, ASKING) || is(at, &["how"]) && is(at + 1, AMOUNTS) || is(at, &["do"]) && is(at + 1, PERSONS));
    asks.then_some((Action::List, 1.0))
}

/// What is wanted where no verb says it: what is no longer to be, or otherwise; else to see what is named.
pub(super) fn implied(tokens: &[Token]) -> (Action, f32) {
    let has = |words: &[&str]| tokens.iter().any(|token| token.is_any(words));
    if has(&["anymore", "longer"]) {
        (Action::Delete, 0.5)
    } else if has(&["may", "must", "shall", "should"]) {
        (Action::Update, 0.3)
    } else {
        (Action::List, 0.4)
    }
}

/// What the word or the phrase at these places wants done, if it is a verb. `key` has its stems.
pub(super) fn of_verb(tokens: &[Token], places: &[usize], key: &str) -> Option<Action> {
    let first = *places.first()?;
    let token = tokens.get(first).filter(|token| token.is_start)?;
    let meanings = synonyms::table().get(key);
    let mut meant = meanings.into_iter().flatten().map(|(stems, _)| Action::of_stem(stems.first()?));
    if let [_, .., last] = places {
        // Such as `call off`.
        let is_verb = tokens.get(*last).is_some_and(|token| token.is_any(PARTICLES));
        return meant.flatten().next().or_else(|| is_verb.then_some(Action::Other));
    }
    if is_noun(tokens, first) {
        return None;
    }
    match Action::asked(&token.word) {
        Some(Action::Other) => meant.flatten().next().or(Some(Action::Other)),
        // Only what such a word means first makes a verb of it, or an article behind it.
        None => {
            let is_before_article = !token.is_stop && tokens.get(first + 1).is_some_and(|next| next.is_any(ARTICLES));
            meant.next().flatten().or_else(|| is_before_article.then_some(Action::Other))
        }
        known => known,
    }
}

/// True if the word is in the plural, or if what follows says that it is a noun: `log of the build`, `events`.
fn is_noun(tokens: &[Token], at: usize) -> bool {
    let is_plural = |token: &Token| {
        token.word.ends_with('s') && !token.word.ends_with("ss") && Action::of_verb(&token.word).is_none()
    };
    tokens.get(at).is_some_and(is_plural) || tokens.get(at + 1).is_some_and(|next| next.is_any(AFTER_NOUNS))
}
