//! Secrets of many subscriptions in a database. One subscription has two live keys, and the older
//! key has an end date.

use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::{Router, routing::post};
use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate::lookup::SubscriptionId;
use hookgate::{Event, MemoryStore, Receiver, Secret, Verified};
use hookgate_testing::{EventFactory, Signer};
use rusqlite::Connection;
use tower::ServiceExt;

type Keys = Vec<(String, Secret, Option<UnixSeconds>)>;

#[derive(Clone)]
struct Db(Arc<Mutex<Connection>>);

impl Db {
    fn open() -> rusqlite::Result<Self> {
        let db = Connection::open_in_memory()?;
        db.execute_batch(
            "create table keys (subscription text, name text, secret text, ends integer);
             insert into keys values
                ('wh_1', '2026-11', 'whsec_made_up_new_secret', null),
                ('wh_1', '2026-05', 'whsec_made_up_old_secret', 1763690000),
                ('wh_2', 'only',    'whsec_made_up_of_another', null);",
        )?;
        Ok(Self(Arc::new(Mutex::new(db))))
    }

    fn keys_of(&self, id: &str) -> Result<Option<Keys>, Box<dyn Error + Send + Sync>> {
        let db = self.0.lock().expect("no panic");
        let mut query =
            db.prepare("select name, secret, ends from keys where subscription = ?1")?;
        let mut rows = query.query([id])?;
        let mut keys = Keys::new();
        while let Some(row) = rows.next()? {
            let (name, secret, ends): (String, String, Option<i64>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            keys.push((name, Secret::new(&secret)?, ends.map(UnixSeconds::new)));
        }
        // None is no such subscription: 401.
        Ok((!keys.is_empty()).then_some(keys))
    }
}

/// With a pool that waits for its connection, this function awaits it.
async fn find(db: Db, id: SubscriptionId) -> Result<Option<Keys>, Box<dyn Error + Send + Sync>> {
    db.keys_of(id.as_str())
}

async fn on_event(verified: Verified, event: Event) -> StatusCode {
    println!("{} with {}", event.event_type(), verified.key_name());
    StatusCode::NO_CONTENT
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let db = Db::open()?;
    let used = Arc::new(Mutex::new(Vec::new()));
    let uses = used.clone();
    let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
    let receiver = Receiver::builder()
        .provider({
            let db = db.clone();
            move |id| find(db.clone(), id)
        })
        .store(MemoryStore::default())
        .clock(clock.clone())
        .on_settled(move |settled| {
            let key = settled.delivery.verified().key_name().to_owned();
            uses.lock().expect("no panic").push(key);
        })
        .build()?;
    let app: Router = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));

    let factory = EventFactory::new();
    let deliver = async |secret: &str, id: &str, at: i64| -> Result<u16, Box<dyn Error>> {
        let signer = Signer::new(Secret::new(secret)?).subscription(id);
        let signer = signer.at(UnixSeconds::new(at));
        let request: Request<Body> = signer
            .request("/webhooks", factory.row_created())
            .map(Body::from);
        Ok(app.clone().oneshot(request).await?.status().as_u16())
    };
    let (new, old) = ("whsec_made_up_new_secret", "whsec_made_up_old_secret");
    let at = 1_763_690_000;
    assert_eq!(deliver(old, "wh_1", at).await?, 204);
    assert_eq!(deliver(new, "wh_1", at).await?, 204);
    assert_eq!(deliver(new, "wh_2", at).await?, 401); // another subscription's key
    assert_eq!(deliver(new, "wh_3", at).await?, 401); // no such subscription

    // After its end date the old key signs nothing more.
    clock.set_wall(UnixSeconds::new(at + 1));
    assert_eq!(deliver(old, "wh_1", at + 1).await?, 401);
    assert_eq!(deliver(new, "wh_1", at + 1).await?, 204);

    // The new one is removed, and this process is told.
    let removed = "delete from keys where name = '2026-11'";
    db.0.lock().expect("no panic").execute(removed, [])?;
    receiver.keys().forget("wh_1")?;
    assert_eq!(deliver(new, "wh_1", at + 1).await?, 401);
    assert_eq!(
        *used.lock().expect("no panic"),
        ["2026-05", "2026-11", "2026-11"]
    );
    Ok(())
}
