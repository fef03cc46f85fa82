//! Bytes that arrive in pieces.

use bytes::{Bytes, BytesMut};

/// The pieces of a body that have arrived. Most bodies arrive in one piece, which is used unchanged.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    first: Bytes,
    /// The first piece and the others, if there are several.
    rest: BytesMut,
}

impl Pieces {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if self.len() == 0 {
            self.first = piece;
            return;
        }
        if self.rest.is_empty() {
            self.rest.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.rest.extend_from_slice(&piece);
    }

    /// All pieces, as one.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() { self.first } else { self.rest.freeze() }
    }
}
