//! An order that is charged, shipped and mailed once, although its worker is killed: `cargo run -p payments --bin order`.
//!
//! The program starts a NATS server, a payment service and a worker. It kills the worker after the payment service has taken
//! the money and before it has answered, and starts another worker. `order worker NATS BANK FOLDER` is the worker.

pub mod bank;
pub mod nats;
pub mod shop;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bank::Bank;
use shop::{Folder, jobs, submit, work};
use tokio::process::{Child, Command};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => {
            let folder = std::env::temp_dir().join(format!("order-{}", std::process::id()));
            let result = demo(&folder).await;
            // There is none if the NATS server did not start.
            let _ = std::fs::remove_dir_all(&folder);
            result
        }
        ["worker", nats, bank, folder] => {
            let _worker = work(nats, bank, PathBuf::from(folder)).await?;
            std::future::pending().await
        }
        _ => Err("usage: order, or order worker NATS BANK FOLDER".into()),
    }
}

async fn demo(folder: &Path) -> Result<(), Box<dyn Error>> {
    let (_server, nats) = nats::start(&folder.join("nats")).await?;
    let (bank, url) = Bank::start().await?;
    let mut first = worker(&nats, &url, folder)?;
    let jobs = jobs(&nats).await?;

    let job = submit(&jobs, 12).await?;
    println!("order 12 is job {}", job.id());
    while bank.payments(12) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    first.kill().await?;
    println!("the worker was killed, and the customer orders again");

    let again = submit(&jobs, 12).await?;
    assert!(again.id() == job.id() && !again.is_new());
    let _second = worker(&nats, &url, folder)?;
    let done = again.result().await?.data;
    println!("another worker finished it: {done:?}");

    let folder = Folder(folder.to_owned());
    println!("the bank got {} requests, and took the money {} time(s)", bank.requests(), bank.payments(12));
    println!("labels: {:?}", folder.read("labels"));
    println!("mails: {:?}", folder.read("outbox"));
    assert_eq!((bank.payments(12), folder.read("labels").len(), folder.read("outbox").len()), (1, 1, 1));
    Ok(())
}

/// Starts a worker as a process of its own.
fn worker(nats: &str, bank: &str, folder: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["worker", nats, bank]).arg(folder).kill_on_drop(true).spawn()
}
