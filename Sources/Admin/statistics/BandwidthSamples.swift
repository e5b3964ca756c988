/// The last six readings of the byte counters, a second apart, so that the first and the last are five seconds apart.
struct BandwidthSamples {
    private var readings: [(toClients: UInt64, fromOrigins: UInt64)] = []
    static let seconds = 5

    mutating func add(toClients: UInt64, fromOrigins: UInt64) {
        readings.append((toClients, fromOrigins))
        if readings.count > BandwidthSamples.seconds + 1 { readings.removeFirst() }
    }

    var bandwidth: Statistics.Bandwidth {
        var result = Statistics.Bandwidth()
        guard readings.count > 1, let first = readings.first, let last = readings.last else { return result }
        let span = UInt64(readings.count - 1)
        result.toClients = (last.toClients &- first.toClients) / span
        result.fromOrigins = (last.fromOrigins &- first.fromOrigins) / span
        return result
    }
}
