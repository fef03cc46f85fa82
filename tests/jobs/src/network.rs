//! Three servers that reach each other, and that workers and submitters reach, through proxies that can be disturbed.

use std::net::SocketAddr;
use std::time::Duration;

use crate::proxy::Proxy;
use crate::servers::{Servers, Settings, TRIES};

const SERVERS: usize = 3;

/// What is done to connections.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// They break, and new ones are refused.
    Closed,
    /// Nothing arrives, and nobody is told.
    Stalled,
    /// Nothing comes back.
    Mute,
    /// Everything arrives later.
    Late,
}

/// Between whom there is trouble.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// A server and all others, and whoever uses it.
    Alone(usize),
    /// A server and the next, both of which the third reaches.
    Pair(usize),
    /// A server and the other servers, while workers and submitters reach it.
    Apart(usize),
    /// Workers and a server.
    Workers(usize),
    /// Submitters and all servers.
    Submitters,
}

/// The proxies.
pub(crate) struct Network {
    /// From each server to each: the first index is that of who connects.
    routes: Vec<Vec<Proxy>>,
    workers: Vec<Proxy>,
    submitters: Vec<Proxy>,
}

impl Network {
    pub(crate) async fn start(sync: &str) -> (Self, Servers) {
        for _ in 0..TRIES {
            let (network, settings) = Self::between(sync).await;
            if let Some(servers) = Servers::tried(settings).await {
                return (network, servers);
            }
        }
        panic!("the servers do not start: run tests/peers/install");
    }

    /// The proxies, and what the servers between them are started with.
    async fn between(sync: &str) -> (Self, Settings) {
        let mut settings = Settings::new(SERVERS, sync);
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let mut network = Self { routes: Vec::new(), workers: Vec::new(), submitters: Vec::new() };
        for _ in 0..SERVERS {
            let mut to = Vec::new();
            for [_, route, _] in &settings.ports {
                to.push(Proxy::start(address(*route)).await);
            }
            network.routes.push(to);
        }
        for [port, ..] in &settings.ports {
            network.workers.push(Proxy::start(address(*port)).await);
            network.submitters.push(Proxy::start(address(*port)).await);
        }
        for (index, cluster) in settings.clusters.iter_mut().enumerate() {
            let route = settings.ports[index][1];
            let urls: Vec<_> = (0..SERVERS)
                .map(|to| if to == index { address(route) } else { network.routes[index][to].address() })
                .map(|address| format!("\"nats://{address}\""))
                .collect();
            // What the servers tell each other and clients of addresses leads nowhere: all goes through the proxies.
            *cluster = format!(
                "cluster {{ name: c, listen: \"127.0.0.1:{route}\", routes: [{}], no_advertise: true, \
                 advertise: \"127.0.0.1:9\" }}\n",
                urls.join(", ")
            );
        }
        (network, settings)
    }

    /// The addresses that workers have, and those that submitters have.
    pub(crate) fn urls(&self) -> [String; 2] {
        [&self.workers, &self.submitters].map(|proxies| {
            let urls: Vec<_> = proxies.iter().map(|proxy| format!("nats://{}", proxy.address())).collect();
            urls.join(",")
        })
    }

    /// The connections of a cut.
    fn of(&self, cut: Cut) -> Vec<&Proxy> {
        let between = |one: usize, other: usize| [&self.routes[one][other], &self.routes[other][one]];
        let others = |one: usize| (0..SERVERS).filter(move |other| *other != one);
        match cut {
            Cut::Alone(one) => {
                let users = [&self.workers[one], &self.submitters[one]];
                others(one).flat_map(|other| between(one, other)).chain(users).collect()
            }
            Cut::Apart(one) => others(one).flat_map(|other| between(one, other)).collect(),
            Cut::Pair(one) => between(one, (one + 1) % SERVERS).to_vec(),
            Cut::Workers(one) => vec![&self.workers[one]],
            Cut::Submitters => self.submitters.iter().collect(),
        }
    }

    /// Makes the trouble of that number, one after another, and says which.
    pub(crate) fn disturb(&self, number: u64) -> String {
        const TROUBLES: [Trouble; 4] = [Trouble::Closed, Trouble::Stalled, Trouble::Mute, Trouble::Late];
        let one = (number / 5) as usize % SERVERS;
        let cut =
            [Cut::Alone(one), Cut::Workers(one), Cut::Apart(one), Cut::Submitters, Cut::Pair(one)][number as usize % 5];
        let trouble = TROUBLES[number as usize % TROUBLES.len()];
        for proxy in self.of(cut) {
            match trouble {
                Trouble::Closed => proxy.close(),
                Trouble::Stalled => proxy.stall(),
                Trouble::Mute => proxy.mute(),
                Trouble::Late => proxy.delay(Duration::from_millis(300)),
            }
        }
        format!("{cut:?} {trouble:?}")
    }

    /// Ends all trouble. What has piled up arrives.
    pub(crate) fn heal(&self) {
        self.routes.iter().flatten().chain(&self.workers).chain(&self.submitters).for_each(Proxy::resume);
    }
}
