import Accounts

/// The names, labels and units of figures by section, and the names of the outcomes, as JSON for the dashboard's script.
let dashboardFigures: String = {
    var json = JSONWriter()
    json.object {
        $0.key("outcomes")
        $0.array { list in
            for outcome in RequestOutcome.allCases where !outcome.counters.isEmpty { list.string("\(outcome.name)") }
        }
        for section in StatisticsSection.allCases where section != .process {
            $0.figures(section.rawValue, section.figures)
        }
        $0.figures("disk", diskFigures)
        $0.figures("workers", workerFigures)
        $0.figures("ecosystems", ecosystemFigures)
        $0.figures("limit_rules", limitRuleFigures)
    }
    return String(decoding: json.bytes, as: UTF8.self)
}()

extension JSONWriter {
    fileprivate mutating func figures<Subject>(_ name: String, _ figures: [Figure<Subject>]) {
        key(name)
        array { list in
            for figure in figures {
                list.object {
                    $0.member("name", figure.name)
                    $0.member("label", figure.label)
                    $0.member("unit", figure.unit.rawValue)
                    $0.member("prominence", figure.prominence.rawValue)
                }
            }
        }
    }
}
