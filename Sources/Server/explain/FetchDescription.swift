/// One fetch as others see it.
package struct FetchDescription: Sendable {
    package var uri: [UInt8]
    package var age: Duration
    /// Body bytes that came so far.
    package var received: UInt64
    /// The length the origin announced; nil while unknown.
    package var expected: UInt64?
    /// Clients that wait for it or read it, as far as this fetch knows them.
    package var readers: Int
    package var isStored: Bool
}
