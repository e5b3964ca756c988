import Rules
import Settings

/// The time zones of this machine: files of the time zone database, each read once.
struct TimeZones {
    private var known: [String: TimeZoneData] = [:]
    private let directory: String

    /// - Parameter directory: nil: the directory that the environment names, or else the usual one.
    init(directory: String? = nil) {
        self.directory = directory ?? environmentVariable("TZDIR") ?? "/usr/share/zoneinfo"
    }

    /// Blocks.
    ///
    /// - Parameter key: of the setting that names the zone.
    mutating func data(of name: String, _ key: String) throws(ProvisioningFault) -> TimeZoneData {
        if let data = known[name] { return data }
        guard fileExists(directory) else {
            throw ProvisioningFault(
                key, "there are no time zones in \(directory)",
                hint: "install tzdata, or write times of UTC with utc behind them")
        }
        let path = "\(directory)/\(name)"
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try readFile(path, bytesMax: TimeZoneData.bytesMax)
        } catch {
            guard !fileExists(path) || names.isEmpty == false && !names.contains(name) else {
                throw ProvisioningFault(key, error.text)
            }
            throw ProvisioningFault(
                key, "there is no time zone \(name) in \(directory)",
                hint: nearestName(to: name, among: names).map { "did you mean \($0)?" })
        }
        do throws(TimeZoneData.Fault) {
            let data = try TimeZoneData(bytes)
            known[name] = data
            return data
        } catch { throw ProvisioningFault(key, "\(path) is no time zone: \(error)") }
    }

    /// The names of the database. Empty if it has no list of them.
    private var names: [String] {
        guard let text = try? readFile("\(directory)/tzdata.zi") else { return [] }
        // `Z NAME …` is a zone, and `L TARGET NAME` another name of one (zic(8)).
        return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ", maxSplits: 3)
            switch words.first {
            case "Z": return words.count > 1 ? String(words[1]) : nil
            case "L": return words.count > 2 ? String(words[2]) : nil
            default: return nil
            }
        }
    }
}
