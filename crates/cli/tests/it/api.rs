//! `hookgate api` and `hookgate rows`, against an emulator in this process.

use hookgate_emulator::{Emulator, Seed};
use serde_json::{Value, json};

use crate::cli::{Ran, Scratch, has, typed};

/// The sample workspace, served here.
pub(crate) struct Service {
    pub(crate) emulator: Emulator,
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code))] // it runs the emulator
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Service {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let emulator = runtime.block_on(Emulator::start(Seed::orders())).unwrap();
        Self { emulator, runtime }
    }

    fn run(&self, line: &str, input: &str) -> Ran {
        self.run_as("tk_test_admin", line, input)
    }

    fn run_as(&self, key: &str, line: &str, input: &str) -> Ran {
        let mut command = typed(line);
        command
            .env("HOOKGATE_API_URL", self.emulator.base_url())
            .env("HOOKGATE_API_KEY", key);
        let file = Scratch::file(
            &format!("api-{}", self.emulator.address().port()),
            input.as_bytes(),
        );
        Ran::to_its_end(command.stdin(std::fs::File::open(file.path()).unwrap()))
    }

    fn done(&self, line: &str, input: &str) -> String {
        self.run(line, input).ends(0).stdout
    }

    fn json(&self, line: &str, input: &str) -> Value {
        self.run(&format!("{line} --json"), input).ends(0).json()
    }
}

#[test]
fn rows_are_listed_by_the_names_of_their_properties() {
    let service = Service::start();
    let newest = "api list rows --model dm_orders --order-by -Quantity --limit 2";
    let text = service.done(newest, "");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("row_order_2  {"), "{text}");
    has(lines[0], &["\"Customer\":\"North Mill\""]);
    let row = service.json("api list rows --model dm_orders --by-id --limit 1", "");
    assert_eq!(row["properties"]["prop_customer"], "Harbour Books");
    assert!(row["createdAt"].is_string());
}

// fault X8: what one command takes, another does not: a data model behind `rows`, the kind `data-model`, `--id`
#[test]
fn a_data_model_is_named_behind_rows_and_as_data_model_too() {
    let service = Service::start();
    for (said, known) in [
        ("api list rows dm_orders", "api list rows --model dm_orders"),
        ("api get data-model dm_orders", "api get model dm_orders"),
        ("api list data-models", "api list models"),
    ] {
        assert_eq!(service.done(said, ""), service.done(known, ""));
    }
    for usage in [
        "api list models dm_orders",
        "api list rows dm_orders --model dm_orders",
    ] {
        service.run(usage, "").ends(2);
    }
}

#[test]
fn a_row_is_created_updated_and_deleted() {
    let service = Service::start();
    let row = r#"{"Customer": "Ada", "Quantity": 2}"#;
    let made = service.json("api create row --model dm_orders", row);
    let row = format!("row {} --model dm_orders", made["id"].as_str().unwrap());
    let changed = service.json(&format!("api update {row}"), r#"{"Quantity": null}"#);
    assert_eq!(changed["properties"], json!({ "Customer": "Ada" }));
    let deleted = service.done(&format!("api delete {row}"), "");
    assert_eq!(
        deleted,
        format!("deleted {}\n", made["id"].as_str().unwrap())
    );
    let again = service.run(&format!("api delete {row} --json"), "").ends(3);
    has(&again.fault(), &["404 NOT_FOUND"]);
}

#[test]
fn the_other_objects_are_read_and_written() {
    let service = Service::start();
    let models = service.done("api list models", "");
    assert!(
        models.starts_with("dm_clients  Clients\ndm_orders  Orders\n"),
        "{models}"
    );
    let model = service.json("api get model dm_orders", "");
    assert_eq!(model["properties"].as_array().unwrap().len(), 9);
    has(
        &service.done("api get page page_1", ""),
        &["\"title\": \"Home\""],
    );
    for (one, change, read) in [
        ("block", r#"{"note": 1}"#, "api list blocks --search needle"),
        (
            "workflow",
            r#"{"note": 1}"#,
            "api list workflows --search needle",
        ),
        ("stat", r#"{"note": 1}"#, "api list stats --search needle"),
        ("model", r#"{"description": "d"}"#, ""),
    ] {
        let made = service.json(&format!("api create {one}"), r#"{"title": "needle"}"#);
        let id = made["id"].as_str().unwrap();
        let changed = service.json(&format!("api update {one} {id}"), change);
        for (name, value) in serde_json::from_str::<Value>(change)
            .unwrap()
            .as_object()
            .unwrap()
        {
            assert_eq!(changed[name], *value, "{one}");
        }
        if !read.is_empty() {
            assert_eq!(service.json(&format!("api get {one} {id}"), ""), changed);
            assert_eq!(service.json(read, ""), changed);
        }
        service.done(&format!("api delete {one} {id}"), "");
    }
}

#[test]
fn faults_have_the_code_of_their_class_and_never_the_key() {
    let service = Service::start();
    let create = "api create row --model dm_orders";
    for (key, line, input, code, said) in [
        (
            "read",
            "api create block --json",
            "{}",
            5,
            "needs the scope write",
        ),
        ("of_nobody", "api list models --json", "", 5, ""),
        (
            "admin",
            &*format!("{create} --json"),
            r#"{"Size": 1}"#,
            3,
            "no property \"Size\"",
        ),
        ("admin", &format!("{create} --json"), "{", 3, ""),
        (
            "admin",
            "api list models --url http://127.0.0.1:1/api/v1 --json",
            "",
            4,
            "",
        ),
        ("admin", "api list rows --json", "{}", 2, ""),
        ("admin", "api get row row_1 --json", "{}", 2, ""),
        ("admin", "api create page --json", "{}", 2, ""),
        (
            "admin",
            "api list rows --model m --search x --json",
            "{}",
            2,
            "",
        ),
    ] {
        let key = format!("tk_test_{key}");
        let ran = service.run_as(&key, line, input).ends(code);
        has(&ran.lacks(&[&key]).fault(), &[said]);
    }
    let mut without = typed("api list models");
    Ran::to_its_end(without.env_remove("HOOKGATE_API_URL")).ends(2);
}

#[test]
fn the_key_comes_from_a_file_or_another_variable() {
    let service = Service::start();
    let file = Scratch::file("api-key", b"tk_test_read\n");
    let list = format!("api list models --url {}", service.emulator.base_url());
    Ran::typed(&format!("{list} --key-file {}", file.path())).ends(0);
    let mut of_variable = typed(&format!("{list} --key-env MINE"));
    Ran::to_its_end(of_variable.env("MINE", "tk_test_read")).ends(0);
    let missing = Ran::to_its_end(of_variable.env_remove("MINE")).ends(5);
    missing.tells(&["MINE is not set"]);
}

/// The file is compiled in a test of `src/api/rust_struct.rs`.
#[test]
fn rows_struct_prints_the_struct_that_a_test_compiles() {
    let service = Service::start();
    let code = service.done("rows struct dm_orders --name Order --required Customer", "");
    assert_eq!(code, include_str!("written/order.rs"));
    service
        .run("rows struct dm_orders --required Size", "")
        .ends(3);
}
