//! The example with the test's own RabbitMQ, which is killed and started again.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test panics on an unexpected result.

#[path = "../../../tests/queues/mod.rs"]
mod queues;

use std::process::Command;
use std::time::{Duration, Instant};

use lapin::options::*;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use queues::folder::Folder;
use queues::process::own_secret;
use queues::server::{Server, free_port, program};
use queues::{Halves, PATIENCE, until_accepted, whole};

/// Where Debian keeps RabbitMQ's own scripts: those on the path run as another user.
const SCRIPTS: &[&str] = &["/usr/lib/rabbitmq/bin"];

/// A node of its own, with its own folder and ports, and its own server of Erlang's names.
struct Rabbit {
    server: Server,
    _names: Server,
    folder: Folder,
    ports: [u16; 3],
}

impl Rabbit {
    fn start() -> Option<Self> {
        let (folder, ports) = (Folder::new(), [(); 3].map(|()| free_port()));
        let mut names = Command::new(program("epmd", &["/usr/bin"])?);
        names.args(["-address", "127.0.0.1", "-port", &ports[1].to_string()]);
        let names = Server::start(&mut names, ports[1]);
        Some(Self {
            server: run(&folder, ports)?,
            _names: names,
            folder,
            ports,
        })
    }

    /// Makes the queues and waits until their names are written, which takes half a second. A
    /// server that is killed earlier loses the messages that it has confirmed, and its queue then
    /// refuses each message (RabbitMQ 3.10).
    fn make_queues(&self) {
        drop(self.halves().producer());
        let quorum = "hookgate@localhost/quorum/hookgate@localhost";
        let file = self.folder.path().join(quorum).join("names.dets");
        let are_written = || {
            let names = std::fs::read(&file).unwrap_or_default();
            String::from_utf8_lossy(&names).matches("webhooks").count() >= 2
        };
        let until = Instant::now() + PATIENCE;
        while !are_written() {
            assert!(Instant::now() < until, "the queues are not written");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill_and_start_again(&mut self) {
        self.server.kill();
        self.server = run(&self.folder, self.ports).unwrap();
    }

    fn url(&self) -> String {
        format!("amqp://127.0.0.1:{}/%2f", self.ports[0])
    }

    fn halves(&self) -> Halves {
        let example = env!("CARGO_BIN_EXE_hookgate-rabbitmq");
        Halves::new(example, &[("AMQP_URL", &self.url())])
    }

    async fn channel(&self) -> Channel {
        let url = self.url();
        let connection = Connection::connect(&url, ConnectionProperties::default());
        connection.await.unwrap().create_channel().await.unwrap()
    }

    fn control(&self, arguments: &[&str]) {
        let mut control = command("rabbitmqctl", &self.folder, self.ports).unwrap();
        let done = control.args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

fn run(folder: &Folder, ports: [u16; 3]) -> Option<Server> {
    let mut server = command("rabbitmq-server", folder, ports)?;
    // The script becomes the server, with the same process id, when it is allowed to read: nothing
    // is there to be read.
    server.env("RABBITMQ_ALLOW_INPUT", "true");
    server.env("RABBITMQ_SERVER_START_ARGS", "-noinput");
    Some(Server::start(&mut server, ports[0]))
}

/// A script of RabbitMQ, which reads nothing of the machine's own node.
fn command(script: &str, folder: &Folder, ports: [u16; 3]) -> Option<Command> {
    let path = folder.path();
    let [port, names, nodes] = ports.map(|port| port.to_string());
    let mut command = Command::new(program(script, SCRIPTS)?);
    command
        .envs([
            ("HOME", path), // of the cookie
            ("RABBITMQ_MNESIA_BASE", path),
            ("RABBITMQ_LOG_BASE", path),
            ("RABBITMQ_PID_FILE", &path.join("pid")),
            ("RABBITMQ_CONFIG_FILE", &path.join("none")),
            ("RABBITMQ_CONF_ENV_FILE", &path.join("none")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", &path.join("none")),
        ])
        .envs([
            ("RABBITMQ_NODENAME", "hookgate@localhost"),
            ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"),
            ("RABBITMQ_NODE_PORT", &port),
            ("RABBITMQ_DIST_PORT", &nodes),
            ("ERL_EPMD_ADDRESS", "127.0.0.1"),
            ("ERL_EPMD_PORT", &names),
            (
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}",
            ),
        ]);
    Some(command)
}

#[tokio::test]
async fn what_cannot_be_published_is_503_and_what_cannot_be_handled_is_a_dead_letter() {
    let Some(rabbit) = Rabbit::start() else {
        return;
    };
    let halves = rabbit.halves();
    let producer = halves.producer();
    let deliver = |id: &str| producer.deliver(own_secret(), &whole(id));
    assert_eq!(deliver("evt_1").status, 200);
    assert!(deliver("evt_1").is_replay());

    // This message has no signature.
    let channel = rabbit.channel().await;
    let select = channel.confirm_select(ConfirmSelectOptions::default());
    select.await.unwrap();
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    let forged = whole("evt_0");
    let (queue, body) = ("webhooks".into(), forged.as_bytes());
    let sent = channel.basic_publish("".into(), queue, options, body, properties);
    assert!(sent.await.unwrap().await.unwrap().is_ack());

    // The queue is full until there is a consumer.
    let full = r#"{"max-length":1}"#;
    rabbit.control(&["set_policy", "full", "^webhooks$", full]);
    let mut events = (2..).map(|event| format!("evt_{event}"));
    let refused = events.find(|id| deliver(id).status == 503).unwrap();
    let consumer = halves.consumer();
    let until = Instant::now() + PATIENCE;
    until_accepted(&producer, &whole(&refused));
    let dead = loop {
        let get = channel.basic_get("webhooks.dead".into(), BasicGetOptions::default());
        if let Some(dead) = get.await.unwrap() {
            break dead.delivery.data;
        }
        assert!(Instant::now() < until, "there is no dead letter");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(dead, forged.as_bytes());
    while !consumer.handled().contains(&refused) {
        assert!(Instant::now() < until, "{refused} is not handled");
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = consumer.lines();
    let is_dead = |line: &&String| line.starts_with("dead letter: not_authentic");
    assert_eq!(said.iter().filter(is_dead).count(), 1, "{said:?}");

    // There is no queue.
    let delete = channel.queue_delete("webhooks".into(), QueueDeleteOptions::default());
    delete.await.unwrap();
    let refused = deliver("evt_none");
    assert!(refused.status == 503 && refused.has("retry-after: 10"));
}

#[test]
fn nothing_is_lost_when_producer_consumer_and_server_are_killed() {
    let Some(mut rabbit) = Rabbit::start() else {
        return;
    };
    rabbit.make_queues();
    let halves = rabbit.halves();
    halves.nothing_is_lost(Some(&mut || rabbit.kill_and_start_again()));
}

#[test]
fn it_has_120_lines_at_most() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines <= 120, "{lines}");
}
