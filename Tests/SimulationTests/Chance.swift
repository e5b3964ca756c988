/// Reproducible random numbers (SplitMix64): all of a run follows from its seed.
struct Chance {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return mixed(state)
    }

    /// 0 to `bound` − 1.
    mutating func below(_ bound: Int) -> Int { Int(next() >> 1) % bound }

    mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

    mutating func percent(_ share: Int) -> Bool { below(100) < share }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// One of these in `share` percent of all cases, otherwise nil.
    mutating func perhaps<Element>(_ share: Int, _ elements: [Element]) -> Element? {
        percent(share) ? pick(elements) : nil
    }
}

/// The output function of SplitMix64: each bit of the result depends on each of the argument.
func mixed(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
}
