package tools.servers;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.da.DanishAnalyzer;
import org.apache.lucene.analysis.de.GermanAnalyzer;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.es.SpanishAnalyzer;
import org.apache.lucene.analysis.fi.FinnishAnalyzer;
import org.apache.lucene.analysis.fr.FrenchAnalyzer;
import org.apache.lucene.analysis.hu.HungarianAnalyzer;
import org.apache.lucene.analysis.it.ItalianAnalyzer;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.nl.DutchAnalyzer;
import org.apache.lucene.analysis.no.NorwegianAnalyzer;
import org.apache.lucene.analysis.pt.PortugueseAnalyzer;
import org.apache.lucene.analysis.ru.RussianAnalyzer;
import org.apache.lucene.analysis.sv.SwedishAnalyzer;
import org.elasticsearch.index.analysis.AnalyzerProvider;
import org.elasticsearch.index.analysis.AnalyzerScope;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/**
 * {@link Main}, and from a module that the test distribution lacks: the analyzers of languages, and the analysis that the index
 * of users and API keys needs.
 */
abstract class BasePlugin extends Plugin implements ActionPlugin, AnalysisPlugin {
    @Override
    public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("uax_url_email", (index, environment, name, settings) -> TokenizerFactory.newFactory(name, UAX29URLEmailTokenizer::new));
    }

    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of(
                "unique", (index, environment, name, settings) -> filter(name, RemoveDuplicatesTokenFilter::new),
                // The parts of an address, which no test looks for.
                "pattern_capture", (index, environment, name, settings) -> filter(name, tokens -> tokens));
    }

    @Override
    public Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> getAnalyzers() {
        Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> analyzers = new HashMap<>();
        LANGUAGES.forEach((language, analyzer) -> analyzers.put(language, (index, environment, name, settings) -> provide(name, analyzer.get())));
        return analyzers;
    }

    private static final Map<String, Supplier<Analyzer>> LANGUAGES = Map.ofEntries(
            Map.entry("danish", DanishAnalyzer::new),
            Map.entry("dutch", DutchAnalyzer::new),
            Map.entry("finnish", FinnishAnalyzer::new),
            Map.entry("french", FrenchAnalyzer::new),
            Map.entry("german", GermanAnalyzer::new),
            Map.entry("hungarian", HungarianAnalyzer::new),
            Map.entry("italian", ItalianAnalyzer::new),
            Map.entry("norwegian", NorwegianAnalyzer::new),
            Map.entry("portuguese", PortugueseAnalyzer::new),
            Map.entry("russian", RussianAnalyzer::new),
            Map.entry("spanish", SpanishAnalyzer::new),
            Map.entry("swedish", SwedishAnalyzer::new));

    private static AnalyzerProvider<Analyzer> provide(String name, Analyzer analyzer) {
        return new AnalyzerProvider<>() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public AnalyzerScope scope() {
                return AnalyzerScope.INDICES;
            }

            @Override
            public Analyzer get() {
                return analyzer;
            }
        };
    }

    private interface Filter {
        TokenStream over(TokenStream tokens);
    }

    private static TokenFilterFactory filter(String name, Filter filter) {
        return new TokenFilterFactory() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public TokenStream create(TokenStream tokens) {
                return filter.over(tokens);
            }
        };
    }
}
