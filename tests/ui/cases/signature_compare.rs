use hookgate::verify::Signature;

fn compare(left: &Signature, right: &Signature) -> bool {
    left == right
}

fn main() {}
