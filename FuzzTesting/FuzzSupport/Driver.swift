/// Starts libFuzzer from a target of the package manager, which has a `main` of its own.

package typealias FuzzBody = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
package typealias Arguments = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutablePointer<Arguments>, _ body: FuzzBody
) -> CInt

package func fuzz(_ count: CInt, _ arguments: Arguments, _ body: FuzzBody) -> CInt {
    var count = count
    var arguments = unsafe arguments
    return unsafe runDriver(&count, &arguments, body)
}

package func input(_ start: UnsafePointer<UInt8>?, _ count: Int) -> [UInt8] {
    unsafe Array(UnsafeBufferPointer(start: start, count: count))
}

/// Three places to split an input of that size; taken from the input, so that a failure can be replayed.
package func splits(_ bytes: [UInt8]) -> [Int] {
    let hash = bytes.reduce(UInt64(bytes.count)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return [hash, hash >> 20, hash >> 40].map { Int($0 % UInt64(bytes.count + 1)) }.sorted() + [bytes.count]
}
