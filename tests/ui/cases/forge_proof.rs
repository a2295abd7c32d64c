use hookgate::verify::{Proof, Timestamp};

fn redate(proof: Proof, timestamp: Timestamp) -> Proof {
    Proof { timestamp, ..proof }
}

fn main() {}
