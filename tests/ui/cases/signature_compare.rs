use hookgate::Signature;

fn compare(left: &Signature, right: &Signature) -> bool {
    left == right
}

fn main() {}
