import Admin
import Server
import Transaction
import JSON

extension Scenario {
    /// What `GET /stats` answers now.
    func stats() throws -> JSONValue {
        try JSONValue(parsing: RunningProxy(proxy: proxy, version: "test").statistics().json())
    }

    /// The member of a section of `/stats`; zero if it is left out.
    func stat(_ section: StatisticsSection, _ name: String) throws -> Int64 {
        try stats()[section.rawValue]?[name]?.integer ?? 0
    }

    func closes(_ reason: CloseReason) -> UInt64 {
        proxy.counters.reduce(0) { $0 + $1.closes[Int(reason.rawValue)] }
    }
}
