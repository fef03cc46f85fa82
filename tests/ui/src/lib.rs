//! What a user of `#[operation]` reads after a mistake: see `cases`.
