"""Data sets: loaders for the data of the papers, generators with known truth, and a small text corpus."""

from cvxstructreg.datasets.corpus import load_corpus
from cvxstructreg.datasets.expression import GeneSetReport, load_diabetes_expression, map_gene_sets
from cvxstructreg.datasets.lexicons import load_opinion_words, load_sentiwordnet, load_stopwords, load_wordnet
from cvxstructreg.datasets.locating import DataNotFoundError, cache_folder, data_folders
from cvxstructreg.datasets.newsgroups import NEWSGROUP_PAIRS, fetch_20newsgroups
from cvxstructreg.datasets.planted_graph import make_graph_smooth
from cvxstructreg.datasets.planted_pairs import make_moons_with_pairs
from cvxstructreg.datasets.planted_text import make_relevant_sentences, make_sparse_text
from cvxstructreg.datasets.reading import DataFormatError
from cvxstructreg.datasets.reviews import load_movie_reviews, load_multi_domain_reviews
from cvxstructreg.datasets.semi_supervised import load_g50c, load_mac_windows, load_uspst
from cvxstructreg.datasets.storing import write_json_lines
from cvxstructreg.datasets.word_vectors import load_word_vectors

__all__ = [
    "NEWSGROUP_PAIRS",
    "DataFormatError",
    "DataNotFoundError",
    "GeneSetReport",
    "cache_folder",
    "data_folders",
    "fetch_20newsgroups",
    "load_corpus",
    "load_diabetes_expression",
    "load_g50c",
    "load_mac_windows",
    "load_movie_reviews",
    "load_multi_domain_reviews",
    "load_opinion_words",
    "load_sentiwordnet",
    "load_stopwords",
    "load_uspst",
    "load_word_vectors",
    "load_wordnet",
    "make_graph_smooth",
    "make_moons_with_pairs",
    "make_relevant_sentences",
    "make_sparse_text",
    "map_gene_sets",
    "write_json_lines",
]
