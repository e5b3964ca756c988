import EventLoop
import Testing

@Suite("RFC 8305 §2 The history of failed addresses")
struct FailedAddressesTests {
    private static func v4(_ number: UInt32) -> SocketAddress { SocketAddress(v4: number, port: 80) }
    private static func v6(_ number: UInt64) -> SocketAddress { SocketAddress(v6: 1, low: number, port: 80) }
    private static let start = MonotonicTime(nanoseconds: 1)
    private static func after(_ seconds: Int) -> MonotonicTime { start.advanced(by: .seconds(seconds)) }

    @Test func `an address that failed comes last for 30 seconds`() {
        var failed = FailedAddresses()
        let addresses = [Self.v4(1), Self.v4(2), Self.v4(3)]
        #expect(failed.ordered(addresses, at: Self.start) == addresses)
        failed.note(.refused, of: Self.v4(1), at: Self.start)
        #expect(failed.ordered(addresses, at: Self.after(29)) == [Self.v4(2), Self.v4(3), Self.v4(1)])
        #expect(failed.ordered(addresses, at: Self.after(30)) == addresses)
    }

    @Test func `a success clears the failure, of that port alone`() {
        var failed = FailedAddresses()
        let otherPort = Self.v4(1).with(port: 443)
        failed.note(.refused, of: Self.v4(1), at: Self.start)
        failed.note(.refused, of: otherPort, at: Self.start)
        failed.noteSuccess(of: Self.v4(1))
        #expect(failed.ordered([Self.v4(1), Self.v4(2)], at: Self.start) == [Self.v4(1), Self.v4(2)])
        #expect(failed.ordered([otherPort, Self.v4(2)], at: Self.start) == [Self.v4(2), otherPort])
    }

    @Test func `if all failed, their order stays`() {
        var failed = FailedAddresses()
        failed.note(.refused, of: Self.v4(1), at: Self.start)
        failed.note(.silent, of: Self.v4(2), at: Self.start)
        #expect(failed.ordered([Self.v4(1), Self.v4(2)], at: Self.start) == [Self.v4(1), Self.v4(2)])
    }

    @Test func `a family whose last three addresses were silent comes last, other addresses of it included`() {
        var failed = FailedAddresses()
        for number in 1...2 { failed.note(.silent, of: Self.v6(UInt64(number)), at: Self.start) }
        let addresses = [Self.v6(9), Self.v4(9)]
        for _ in 0..<3 { failed.note(.silent, of: Self.v6(2), at: Self.start) }
        #expect(failed.ordered(addresses, at: Self.start) == addresses, "two addresses, however often")
        failed.note(.silent, of: Self.v6(3), at: Self.start)
        #expect(failed.ordered(addresses, at: Self.after(29)) == [Self.v4(9), Self.v6(9)])
        // Then the family gets another chance, and a single failure takes it away.
        #expect(failed.ordered(addresses, at: Self.after(30)) == addresses)
        failed.note(.silent, of: Self.v6(4), at: Self.after(31))
        #expect(failed.ordered(addresses, at: Self.after(31)) == [Self.v4(9), Self.v6(9)])
    }

    @Test func `a refusal or a success shows that the family works`() {
        for refuses in [true, false] {
            var failed = FailedAddresses()
            for number in 1...3 { failed.note(.silent, of: Self.v6(UInt64(number)), at: Self.start) }
            if refuses { failed.note(.refused, of: Self.v6(4), at: Self.start) }
            if !refuses { failed.noteSuccess(of: Self.v6(4)) }
            #expect(failed.ordered([Self.v6(9), Self.v4(9)], at: Self.start) == [Self.v6(9), Self.v4(9)])
        }
    }

    @Test func `the table is bounded and forgets the oldest failure`() {
        var bounds = FailedAddresses.Bounds()
        bounds.entriesMax = 10
        var failed = FailedAddresses(bounds: bounds)
        for number in 0..<100 { failed.note(.refused, of: Self.v4(UInt32(number)), at: Self.after(number / 10)) }
        #expect(failed.count == 10)
        #expect(failed.ordered([Self.v4(99), Self.v4(1)], at: Self.after(10)) == [Self.v4(1), Self.v4(99)])
    }
}
