//! The rights that the page names: the suites of the store, the order and the inbox run with
//! exactly these.

use tokio_postgres::{Client, Config, NoTls};

use super::migrate;

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Makes the tables in this schema by the page's role `migrator`, and returns the configuration of
/// its role `app`.
pub async fn as_on_the_page(owner: &Config, schema: &str) -> Config {
    let page = include_str!("../../docs/postgres.md");
    let (_, grants) = page.split_once("```sql\n").unwrap();
    let (grants, _) = grants.split_once("```").unwrap();
    let grants = grants.replace("public", schema);
    let (of_migrator, of_app): (Vec<_>, Vec<_>) = grants
        .lines()
        .partition(|grant| grant.ends_with(" TO migrator;"));
    assert_eq!((of_migrator.len(), of_app.len()), (1, 3));
    let role = |name| {
        let mut config = owner.clone();
        config.user(name);
        config.options(format!("-c search_path={schema}"));
        config
    };
    let owner = connect(&role(owner.get_user().unwrap())).await;
    for name in ["migrator", "app"] {
        // Roles are those of the whole server.
        let made = format!(
            "DO $$ BEGIN CREATE ROLE {name} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        );
        owner.batch_execute(&made).await.unwrap();
    }
    let schema = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; REVOKE ALL ON SCHEMA {schema} FROM PUBLIC; {}",
        of_migrator.concat()
    );
    owner.batch_execute(&schema).await.unwrap();
    let migrator = connect(&role("migrator")).await;
    migrate(&migrator).await.unwrap();
    owner.batch_execute(&of_app.concat()).await.unwrap();
    let app = connect(&role("app")).await;
    migrate(&app).await.unwrap();
    role("app")
}
