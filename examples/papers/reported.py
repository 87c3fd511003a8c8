"""What the five papers report: every number of their tables, typed once, and the list of their tables and figures.

Errors, accuracies and model sizes are in percent unless the paper's own table says otherwise.
"""

from __future__ import annotations

#: Every table and figure of each paper, with its subject.
ITEMS: dict[str, dict[str, str]] = {
    "Goldberg, Zhu and Wright 2007": {
        "Table 1": "multiclass error on USPS test, by number of pairs",
        "Table 2": "error on politics.com",
        "Figure 1": "error on g50c and mac-windows, by number of edges",
        "Figure 2": "error on g50c and mac-windows, by weight of the edges",
    },
    "Sandler and others 2008": {
        "Table 1": "sizes of the review data and networks",
        "Figure 1": "accuracy on 20 newsgroups",
        "Figure 2": "feature classes and a dissimilarity edge on reviews",
        "Figure 3": "accuracy on reviews, ridge and feature network",
    },
    "Fei, Quanz and Huan 2010": {
        "Table 1": "accuracy and selected features on diabetes and newsgroups",
        "Figure 1": "accuracy by number of documents",
    },
    "Yogatama and Smith 2014": {
        "Table 1": "sizes of the data sets",
        "Table 2": "accuracy and model size",
        "Table 3": "the sentences of a post, with scores",
        "Table 4": "the sentences of a dvd review, with scores",
    },
    "Skianis, Rousseau and Vazirgiannis 2016": {
        "Table 1": "sizes of the data sets",
        "Table 2": "accuracy",
        "Table 3": "model size",
        "Table 4": "numbers of groups",
        "Table 5": "learning time",
        "Table 6": "groups of LSI, kept and removed",
        "Table 7": "groups of word2vec, kept and removed",
        "Table 8": "groups of the graph of words, kept and removed",
        "Figure 1": "a graph of words, drawn as an illustration",
    },
}

#: Goldberg and others, Table 1: mean error by number of pairs. Columns: overall, in sample, out of sample.
GOLDBERG_TABLE_1 = {
    0: (24.48, 24.48, 24.48),
    10: (24.41, 20.47, 24.40),
    20: (24.32, 23.53, 24.33),
    40: (24.27, 24.17, 24.27),
    80: (23.96, 23.57, 23.99),
    160: (23.63, 24.49, 23.48),
    320: (23.30, 23.57, 23.20),
}
#: The cells of Table 1 that the paper prints in bold: significantly lower than without pairs.
GOLDBERG_TABLE_1_BOLD = {(80, "overall"), (160, "overall"), (320, "overall"), (80, "out of sample")}
GOLDBERG_TABLE_1_BOLD |= {(160, "out of sample"), (320, "out of sample")}
#: Goldberg and others, Table 2: (mean, standard deviation) of the error without and with pairs.
GOLDBERG_TABLE_2 = {"SVM": ((45.67, 3.28), (40.15, 4.95)), "RLS": ((45.60, 3.94), (37.99, 1.88))}

#: Sandler and others, Table 1: reviews, features, edges.
SANDLER_TABLE_1 = {
    "books": (13161, 29404, 470034),
    "DVDs": (13005, 31475, 419178),
    "electronics": (8922, 15104, 343890),
    "kitchen": (7760, 11658, 305926),
}
#: Sandler and others, section 4.1: words of the newsgroups, and the smallest and largest gain over ridge in points.
SANDLER_WORDS, SANDLER_GAINS = 11376, (4.0, 17.0)

#: Fei and others, Table 1. Columns: F (features), P (pathways) or D (total separation), SEN, SPE, ACC.
FEI_TABLE_1 = {
    "diabetes": {
        "lasso": (9, 9, 0.57, 0.58, 0.64),
        "elastic net": (28, 10, 0.55, 0.58, 0.68),
        "Laplacian elastic net": (25, 6, 0.57, 0.54, 0.68),
        "feature network": (701, 13, 0.47, 0.63, 0.61),
    },
    "newsgroups": {
        "lasso": (23, 308, 0.68, 0.84, 0.72),
        "elastic net": (109, 1159, 0.92, 0.66, 0.74),
        "Laplacian elastic net": (41, 146, 0.75, 0.88, 0.78),
        "feature network": (610, 8949, 0.34, 0.80, 0.65),
    },
}
#: Fei and others, section 4.3: pathways of the genes that are selected in all 30 runs.
FEI_PATHWAYS_OF_ALL_RUNS = {"lasso": 12, "elastic net": 13, "Laplacian elastic net": 9}

#: Yogatama and Smith, Table 1: training, development and test documents, words, sentences.
YOGATAMA_TABLE_1 = {
    "science": (952, 235, 790, 30154, 19075),
    "sports": (958, 239, 796, 20832, 18861),
    "religion": (870, 209, 717, 24528, 22297),
    "computer": (929, 239, 777, 20868, 13969),
    "books": (1600, 200, 200, 21641, 14249),
    "dvd": (1600, 200, 200, 22101, 15958),
    "music": (1600, 200, 200, 17283, 12172),
    "electronics": (1600, 200, 200, 10885, 10885),
    "movie": (1600, 200, 200, 17744, 49489),
    "vote": (1175, 257, 860, 24508, 36434),
    "forecasting, science": (3207, 280, 539, 42702, 638068),
    "forecasting, bill": (37850, 7341, 6571, 10001, 2526063),
}
YOGATAMA_MODELS = ("lasso", "ridge", "elastic net", "sentences")
#: Yogatama and Smith, Table 2: accuracy of the most frequent class and of the four models.
YOGATAMA_TABLE_2 = {
    "science": (50.13, 90.63, 91.90, 91.65, 96.20),
    "sports": (50.13, 91.08, 93.34, 93.71, 95.10),
    "religion": (55.51, 90.52, 92.47, 92.47, 92.75),
    "computer": (50.45, 85.84, 86.74, 87.13, 90.86),
    "books": (50.00, 76.50, 80.50, 81.50, 84.00),
    "dvd": (50.00, 78.50, 73.50, 79.00, 81.50),
    "music": (50.00, 73.00, 72.00, 73.50, 80.00),
    "electronics": (50.00, 81.50, 86.00, 86.00, 84.00),
    "movie": (50.00, 76.00, 87.50, 89.00, 88.00),
    "vote": (58.37, 73.14, 72.79, 72.79, 73.95),
    "forecasting, science": (50.28, 64.00, 66.79, 66.23, 67.71),
    "forecasting, bill": (87.40, 88.36, 87.70, 88.48, 88.11),
}
#: Yogatama and Smith, Table 2: model sizes in percent of the words.
YOGATAMA_TABLE_2_SIZES = {
    "science": (1, 100, 34, 12),
    "sports": (2, 100, 15, 3),
    "religion": (0.3, 100, 48, 94),
    "computer": (2, 100, 24, 10),
    "books": (0.6, 100, 9, 6),
    "dvd": (3, 100, 5, 8),
    "music": (5, 100, 14, 14),
    "electronics": (7, 100, 43, 12),
    "movie": (0.3, 100, 14, 5),
    "vote": (2, 100, 44, 6),
    "forecasting, science": (31, 100, 43, 99),
    "forecasting, bill": (7, 100, 7, 8),
}
#: Yogatama and Smith, Table 3: a phrase of each sentence, and its scores (negative first) as far as they exceed 0.001.
#: Four scores belong to sentences, elastic net, ridge and lasso; of fewer, our copy of the paper lacks the model.
YOGATAMA_POST_SCORES = {
    "From:": "",
    "Accelerating the MacPlus": "0.05",
    "a bold step": "0.07, 0.03, 0.02, 0.02",
    "difficult": "0.06, 0.02, 0.02, 0.04",
    "Suffice it": "0.01",
    "make the rules": "0.01",
    "purpose of this post": "0.04, 0.01",
    "So far, I've": "0.02, 0.02, 0.02, 0.04",
    "look acceptable": "-0.01",
    "another accelerator": "0.06, 0.03, 0.02, 0.06",
    "Thanks for any": "-0.01, -0.01, -0.01",
    "Karl": "",
}
#: Yogatama and Smith, section 5.4: seconds to learn the chosen model on sports.
YOGATAMA_SECONDS = {"sports": (27, 18, 10, 33)}

#: Skianis and others, Table 1: training, development and test documents, words, sentences.
SKIANIS_TABLE_1 = {
    "science": (949, 238, 790, 25787, 16411),
    "sports": (957, 240, 796, 21938, 14997),
    "religion": (863, 216, 717, 18822, 18853),
    "computer": (934, 234, 777, 16282, 10772),
    "vote": (1175, 257, 860, 19813, 43563),
    "movie": (1600, 200, 200, 43800, 49433),
    "books": (1440, 360, 200, 21545, 13806),
    "dvd": (1440, 360, 200, 21086, 13794),
    "electronics": (1440, 360, 200, 10961, 10227),
    "kitchen": (1440, 360, 200, 9248, 8998),
}
SKIANIS_MODELS = ("none", "lasso", "ridge", "elastic net", "LDA", "LSI", "sentences", "graph of words", "word vectors")
#: Skianis and others, Table 2: accuracy.
SKIANIS_TABLE_2 = {
    "science": (94.6, 91.6, 95.4, 95.4, 96.8, 96.8, 94.2, 96.7, 96.8),
    "sports": (90.8, 90.7, 92.5, 92.0, 95.9, 96.4, 96.6, 95.9, 94.6),
    "religion": (89.4, 87.6, 89.5, 89.0, 91.8, 90.7, 93.4, 91.1, 91.6),
    "computer": (84.6, 84.3, 86.9, 85.6, 89.1, 88.5, 90.4, 88.5, 91.1),
    "vote": (60.6, 64.3, 61.6, 62.2, 65.8, 65.3, 65.6, 64.0, 65.1),
    "movie": (86.5, 86.0, 87.0, 87.5, 90.0, 89.5, 89.5, 89.5, 89.0),
    "books": (75.0, 77.0, 76.0, 78.0, 79.0, 79.5, 78.5, 79.0, 80.0),
    "dvd": (76.5, 73.5, 77.0, 76.0, 80.0, 80.5, 78.5, 79.5, 79.5),
    "electronics": (79.0, 80.0, 80.0, 82.5, 80.0, 81.5, 80.5, 82.0, 81.5),
    "kitchen": (76.0, 80.0, 77.5, 80.0, 84.5, 86.0, 85.5, 84.0, 85.5),
}
#: Skianis and others, Table 3: nonzero weights in percent.
SKIANIS_TABLE_3 = {
    "science": (100, 1, 100, 63, 19, 20, 86, 19, 21),
    "sports": (100, 1, 100, 5, 60, 11, 6.4, 55, 44),
    "religion": (100, 1, 100, 3, 94, 31, 99, 10, 85),
    "computer": (100, 2, 100, 7, 40, 35, 77, 38, 18),
    "vote": (100, 1, 100, 8, 15, 16, 13, 97, 13),
    "movie": (100, 1, 100, 59, 72, 81, 55, 90, 62),
    "books": (100, 3, 100, 14, 41, 74, 72, 90, 99),
    "dvd": (100, 2, 100, 28, 64, 8, 8, 58, 64),
    "electronics": (100, 4, 100, 6, 10, 8, 43, 8, 9),
    "kitchen": (100, 5, 100, 79, 73, 44, 27, 75, 46),
}
#: Skianis and others, Table 4: numbers of groups of the graph of words and of the word vectors.
SKIANIS_TABLE_4 = {"science": (79, 691), "sports": (137, 630), "religion": (35, 639), "computer": (95, 594)}
#: Skianis and others, Table 5: seconds to learn the chosen model, in the order of SKIANIS_MODELS without "none".
SKIANIS_TABLE_5 = {
    "science": (10, 1.6, 1.6, 15, 11, 76, 12, 19),
    "sports": (12, 3, 3, 7, 20, 67, 5, 9),
    "religion": (12, 3, 7, 10, 4, 248, 6, 20),
    "computer": (7, 1.4, 0.8, 8, 6, 43, 5, 10),
}
