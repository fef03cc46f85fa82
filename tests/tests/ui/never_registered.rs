#![deny(dead_code)]

use ops_runtime::operation;

/// The runtime without the feature `discover`, with which every operation is registered.
mod runtime {
    macro_rules! ignore {
        ($operation:ident) => {};
    }

    pub mod __private {
        pub(crate) use ignore as submit;
        pub use ops_runtime::__private::*;
    }
}

#[operation(namespace = "shop", crate = crate::runtime)]
async fn find(id: u64) -> u64 {
    id
}

#[operation(namespace = "shop", crate = crate::runtime)]
async fn look(id: u64) -> u64 {
    id
}

fn main() {
    let _ = ops_runtime::Registry::new().register(Look);
}
