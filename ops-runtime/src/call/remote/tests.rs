use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::call::{CallHandler, InProcess, Link};

#[tokio::test]
async fn what_nobody_serves_any_more_is_forgotten() {
    let registry = Registry::new();
    let operation = |name: &str| {
        let spec = OperationSpec::new(OperationKind::Query, "test", name).unwrap();
        Registration::new(spec, Handler::dynamic(|input: serde_json::Value, _| async move { Ok(input) }))
    };
    registry.register(operation("stays")).unwrap();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry.clone()));
    let remote = transport.remote();
    assert_eq!(remote.call("test.stays", json!(0)).await.unwrap().data, 0);
    for n in 0..2 * REMEMBERED {
        let name = format!("n{n}");
        registry.register(operation(&name)).unwrap();
        worker.announce();
        assert_eq!(remote.call(&format!("test.{name}"), json!(n)).await.unwrap().data, n);
        registry.remove(&format!("test.{name}")).unwrap();
        worker.announce();
    }
    let known = remote.registry.table().len();
    assert!(known > 1 && known <= REMEMBERED, "{known}");
    assert!(remote.registry.spec("test.stays").is_some());
    assert_eq!(remote.call("test.stays", json!(1)).await.unwrap().data, 1);
    worker.stop().await;
}

/// A peer that serves a subscription, and keeps the windows that are asked for.
#[derive(Clone, Default)]
struct Windows(Arc<Mutex<Vec<Option<u64>>>>);

impl Link for Windows {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        if let Frame::Event(CallEvent::Requested(request)) = frame {
            self.0.lock().unwrap().push(request.window_bytes);
        }
        Ok(())
    }
}

impl Transport for Windows {
    fn route(&self, _: &str) -> Result<Route, CallError> {
        Ok(Route::To(PendingRequests::new(Arc::new(self.clone()))))
    }

    fn spec(&self, _: &str) -> Option<SpecRef> {
        static ITEMS: OperationSpec = OperationSpec::subscription("test.items");
        Some(SpecRef::Static(&ITEMS))
    }

    fn list(&self) -> Vec<SpecRef> {
        Vec::new()
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn info(&self) -> TransportInfo {
        TransportInfo::new("windows")
    }
}

#[tokio::test]
async fn each_clone_has_its_window() {
    let windows = Windows::default();
    let remote = Remote::new(windows.clone()).with_policy(OutputPolicy::Strict);
    let small = remote.clone().with_window(1);
    let mut items = Vec::new();
    for remote in [&small, &remote, &small, &remote.clone().with_window(2)] {
        assert_eq!(remote.registry.policy(), OutputPolicy::Strict);
        items.push(remote.stream("test.items", json!({})).await.unwrap());
    }
    assert_eq!(*windows.0.lock().unwrap(), [Some(1), Some(WINDOW_BYTES), Some(1), Some(2)]);
}
