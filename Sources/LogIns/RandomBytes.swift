import CLarder

/// Random bytes of the system, which nobody can guess.
package func randomBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let status = unsafe bytes.withUnsafeMutableBytes { unsafe clarder_random($0.baseAddress, count) }
    precondition(status == 0, "the system returned no random numbers")
    return bytes
}
