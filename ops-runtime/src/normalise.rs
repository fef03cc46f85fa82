//! Repairing values by their schema.
