//! Every snippet of the book and of the README compiles as it stands; those that say `run` are run.

/// What snippets find around them.
#[allow(dead_code, missing_docs, unreachable_pub)]
mod around {
    ops_runtime::include_operations!(pub(crate) mod shop = "shop");
    ops_runtime::include_operations!(pub(crate) mod payments = "payments");
    ops_runtime::include_operations!(pub(crate) mod contacts = "contacts");
    ops_runtime::include_operations!(pub(crate) mod llm = "llm");
    ops_runtime::include_operations!(pub(crate) mod archive = "archive");
    ops_runtime::include_operations!(pub(crate) mod stock = "stock");
    ops_runtime::include_operations!(pub(crate) mod files = "files");
    ops_runtime::include_operations!(pub(crate) mod store = "store");

    /// Functions that snippets call.
    pub(crate) mod math {
        /// Adds two numbers.
        #[ops_runtime::operation(namespace = "math", kind = query)]
        pub(crate) async fn add(a: i64, b: i64) -> i64 {
            a + b
        }
    }
}

// Each has a file of its own, in which its lines have the numbers that they have on its page.
#[allow(clippy::all, dead_code, unused, missing_docs, unreachable_pub)]
mod snippets {
    include!(concat!(env!("OUT_DIR"), "/snippets/all.rs"));
}
