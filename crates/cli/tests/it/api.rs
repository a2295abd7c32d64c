//! `hookgate api` and `hookgate rows`, against an emulator in this process.

use hookgate_emulator::{Emulator, Seed};
use serde_json::{Value, json};

use crate::cli::{Ran, Scratch, hookgate};

struct Service {
    emulator: Emulator,
    runtime: tokio::runtime::Runtime,
}

impl Service {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let emulator = runtime.block_on(Emulator::start(Seed::orders())).unwrap();
        Self { emulator, runtime }
    }

    fn run(&self, arguments: &str, input: &str) -> Ran {
        self.run_as("tk_test_admin", arguments, input)
    }

    fn run_as(&self, key: &str, arguments: &str, input: &str) -> Ran {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let port = self.emulator.address().port();
        let file = Scratch::file(&format!("api-{port}"), input.as_bytes());
        let mut command = hookgate(&arguments);
        command
            .env("HOOKGATE_API_URL", self.emulator.base_url())
            .env("HOOKGATE_API_KEY", key)
            .stdin(std::fs::File::open(file.path()).unwrap());
        Ran::to_its_end(&mut command)
    }

    fn done(&self, arguments: &str, input: &str) -> String {
        let ran = self.run(arguments, input);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    }

    fn json(&self, arguments: &str, input: &str) -> Value {
        let printed = self.done(&format!("{arguments} --json"), input);
        serde_json::from_str(&printed).expect("one value")
    }
}

#[test]
fn rows_are_listed_by_the_names_of_their_properties() {
    let service = Service::start();
    let text = service.done(
        "api list rows --model dm_orders --order-by -Quantity --limit 2",
        "",
    );
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("row_order_2  {") && lines[0].contains("\"Customer\":\"North Mill\""),
        "{text}"
    );
    let row = service.json("api list rows --model dm_orders --by-id --limit 1", "");
    assert_eq!(row["properties"]["prop_customer"], "Harbour Books");
    assert!(row["createdAt"].is_string());
}

// fault X8: what one command takes, another does not: a data model behind `rows`, the kind `data-model`, `--id`
#[test]
fn a_data_model_is_named_behind_rows_and_as_data_model_too() {
    let service = Service::start();
    let rows = service.done("api list rows dm_orders", "");
    assert_eq!(rows, service.done("api list rows --model dm_orders", ""));
    for (said, known) in [
        ("api get data-model dm_orders", "api get model dm_orders"),
        ("api list data-models", "api list models"),
    ] {
        assert_eq!(service.done(said, ""), service.done(known, ""));
    }
    for usage in [
        "api list models dm_orders",
        "api list rows dm_orders --model dm_orders",
    ] {
        assert_eq!(service.run(usage, "").code, Some(2), "{usage}");
    }
}

#[test]
fn a_row_is_created_updated_and_deleted() {
    let service = Service::start();
    let made = service.json(
        "api create row --model dm_orders",
        r#"{"Customer": "Ada", "Quantity": 2}"#,
    );
    let id = made["id"].as_str().unwrap();
    let changed = service.json(
        &format!("api update row {id} --model dm_orders"),
        r#"{"Quantity": null}"#,
    );
    assert_eq!(changed["properties"], json!({ "Customer": "Ada" }));
    let deleted = service.done(&format!("api delete row {id} --model dm_orders"), "");
    assert_eq!(deleted, format!("deleted {id}\n"));
    let again = service.run(&format!("api delete row {id} --model dm_orders --json"), "");
    assert_eq!(again.code, Some(3));
    assert!(
        again.fault()["error"]
            .as_str()
            .unwrap()
            .contains("404 NOT_FOUND")
    );
}

#[test]
fn the_other_objects_are_read_and_written() {
    let service = Service::start();
    assert!(
        service
            .done("api list models", "")
            .starts_with("dm_clients  Clients\ndm_orders  Orders\n")
    );
    let model = service.json("api get model dm_orders", "");
    assert_eq!(model["properties"].as_array().unwrap().len(), 9);
    assert!(
        service
            .done("api get page page_1", "")
            .contains("\"title\": \"Home\"")
    );
    for (one, many) in [
        ("block", "blocks"),
        ("workflow", "workflows"),
        ("stat", "stats"),
    ] {
        let made = service.json(&format!("api create {one}"), r#"{"title": "needle"}"#);
        let id = made["id"].as_str().unwrap();
        let changed = service.json(&format!("api update {one} {id}"), r#"{"note": 1}"#);
        assert_eq!(service.json(&format!("api get {one} {id}"), ""), changed);
        assert_eq!(
            service.json(&format!("api list {many} --search needle"), ""),
            changed
        );
        service.done(&format!("api delete {one} {id}"), "");
    }
    let made = service.json("api create model", r#"{"title": "Notes"}"#);
    let id = made["id"].as_str().unwrap();
    let changed = service.json(&format!("api update model {id}"), r#"{"description": "d"}"#);
    assert_eq!(changed["description"], "d");
    service.done(&format!("api delete model {id}"), "");
}

#[test]
fn faults_have_the_code_of_their_class_and_never_the_key() {
    let service = Service::start();
    let reader = service.run_as("tk_test_read", "api create block --json", "{}");
    assert_eq!(reader.code, Some(5));
    assert!(
        reader.fault()["error"]
            .as_str()
            .unwrap()
            .contains("needs the scope write")
    );
    let nobody = service.run_as("tk_test_of_nobody", "api list models", "");
    assert_eq!(nobody.code, Some(5));
    let unknown = service.run("api create row --model dm_orders --json", r#"{"Size": 1}"#);
    assert_eq!(unknown.code, Some(3));
    assert!(
        unknown.fault()["error"]
            .as_str()
            .unwrap()
            .contains("no property \"Size\"")
    );
    let wrong = service.run("api create row --model dm_orders", "{");
    assert_eq!(wrong.code, Some(3));
    for usage in [
        "api list rows",
        "api get row row_1",
        "api create page",
        "api list rows --model m --search x",
    ] {
        assert_eq!(service.run(usage, "{}").code, Some(2), "{usage}");
    }
    let unreached = service.run("api list models --url http://127.0.0.1:1/api/v1", "");
    assert_eq!(unreached.code, Some(4));
    for ran in [reader, nobody, unreached] {
        let text = ran.stdout + &ran.stderr;
        for key in ["tk_test_read", "tk_test_of_nobody", "tk_test_admin"] {
            assert!(!text.contains(key), "{text}");
        }
    }
    let without =
        Ran::to_its_end(hookgate(&["api", "list", "models"]).env_remove("HOOKGATE_API_URL"));
    assert_eq!(without.code, Some(2));
}

#[test]
fn the_key_comes_from_a_file_or_another_variable() {
    let service = Service::start();
    let file = Scratch::file("api-key", b"tk_test_read\n");
    let url = service.emulator.base_url();
    let of_file = [
        "api",
        "list",
        "models",
        "--url",
        &url,
        "--key-file",
        file.path(),
    ];
    assert_eq!(Ran::of(&of_file).code, Some(0));
    let mut of_variable = hookgate(&["api", "list", "models", "--url", &url, "--key-env", "MINE"]);
    assert_eq!(
        Ran::to_its_end(of_variable.env("MINE", "tk_test_read")).code,
        Some(0)
    );
    let missing = Ran::to_its_end(of_variable.env_remove("MINE"));
    assert_eq!(missing.code, Some(5));
    assert!(missing.stderr.contains("MINE is not set"), "{missing:?}");
}

/// The file is compiled in a test of `src/api/rust_struct.rs`.
#[test]
fn rows_struct_prints_the_struct_that_a_test_compiles() {
    let service = Service::start();
    let code = service.done("rows struct dm_orders --name Order --required Customer", "");
    assert_eq!(code, include_str!("written/order.rs"));
    let unknown = service.run("rows struct dm_orders --required Size", "");
    assert_eq!(unknown.code, Some(3));
    drop(service.runtime);
}
